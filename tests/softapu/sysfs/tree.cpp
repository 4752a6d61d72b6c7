// SPDX-License-Identifier: MIT
#include "sysfs/tree.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <system_error>

#include "session/layout.h"
#include "sysfs/topology.h"

namespace apusched::softapu {
namespace fs = std::filesystem;
namespace {

void line(const fs::path& file, const std::string& text) {
  put(file, text + "\n");
}

// 0x1681 -> 1681, in capitals as the kernel prints it in uevent.
std::string bare_hex(const std::string& prefixed) {
  std::string text = prefixed.substr(2);
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

void make_pci_device(const TreePaths& paths, const MachineModel& m) {
  const fs::path& dev = paths.device;
  line(dev / "vendor", "0x1002");
  line(dev / "device", m.pci_device);
  line(dev / "revision", m.pci_revision);
  line(dev / "class", "0x030000");
  line(dev / "subsystem_vendor", m.subsystem_vendor);
  line(dev / "subsystem_device", m.subsystem_device);
  line(dev / "uevent", "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:" + bare_hex(m.pci_device) +
                           "\nPCI_SUBSYS_ID=" + bare_hex(m.subsystem_vendor) + ":" +
                           bare_hex(m.subsystem_device) + "\nPCI_SLOT_NAME=" + m.pci_address);
  line(dev / "current_link_speed", m.link_speed);
  line(dev / "current_link_width", std::to_string(m.link_width));
  line(dev / "max_link_speed", m.link_speed);
  line(dev / "max_link_width", std::to_string(m.link_width));
  line(dev / "numa_node", "-1");
  line(dev / "power_state", "D0");
  line(dev / "boot_vga", "1");
  line(dev / "pcie_replay_count", "0");
  line(dev / "vbios_version", m.vbios);
  line(dev / "power_dpm_state", "performance");
  line(dev / kLevelFileName, "auto");
  if (m.unique_id) line(dev / "unique_id", *m.unique_id);
  const DeviceDescription& d = m.device;
  line(dev / "mem_info_vram_total", std::to_string(d.vram_bytes));
  line(dev / "mem_info_vis_vram_total", std::to_string(d.vram_bytes));
  line(dev / "mem_info_gtt_total", std::to_string(d.gtt_bytes));
  line(dev / "mem_info_vram_vendor", "unknown");
  fs::create_directories(dev / "power");
  line(dev / "power/control", "auto");
  line(dev / "power/runtime_status", "active");
  fs::create_directories(dev / "fw_version");
  line(dev / "fw_version/mec_fw_version", "0x0000" + std::to_string(m.mec_firmware));
}

void make_drm(const TreePaths& paths, const MachineModel& m) {
  const std::string card = "card" + std::to_string(m.card);
  const std::string render = "renderD" + std::to_string(m.device.drm_render_minor);
  const fs::path drm = paths.sys / "class/drm";
  fs::create_directories(drm);
  line(drm / "version", "drm 1.1.0 20060810");
  for (const std::string& node : {card, render}) {
    const fs::path dir = paths.device / "drm" / node;
    fs::create_directories(dir);
    const auto minor = node == card ? m.card : m.device.drm_render_minor;
    line(dir / "dev", "226:" + std::to_string(minor));
    line(dir / "uevent", "MAJOR=226\nMINOR=" + std::to_string(minor) + "\nDEVNAME=dri/" + node +
                             "\nDEVTYPE=drm_minor");
    fs::create_directory_symlink("../../../" + m.pci_address, dir / "device");
    // rocm-smi reads the link's text and wants the PCI address in front of drm/cardN.
    fs::create_directory_symlink(
        "../../devices/pci0000:00/" + m.pci_parent + "/" + m.pci_address + "/drm/" + node,
        drm / node);
    // Which device a descriptor is of, asked by its number (libdrm).
    fs::create_directories(paths.sys / "dev/char");
    fs::create_directory_symlink(
        "../../devices/pci0000:00/" + m.pci_parent + "/" + m.pci_address + "/drm/" + node,
        paths.sys / "dev/char" / ("226:" + std::to_string(minor)));
  }
}

void make_hwmon(const TreePaths& paths, const MachineModel& m) {
  line(paths.hwmon / "name", "amdgpu");
  if (m.has_temp1) line(paths.hwmon / "temp1_label", "edge");
  line(paths.hwmon / "freq1_label", "sclk");
  if (!m.power_file.empty()) line(paths.hwmon / "power1_label", m.power_label);
  line(paths.hwmon / "in0_label", "vddgfx");
  line(paths.hwmon / "in0_input", std::to_string(m.vddgfx_mv));
  line(paths.hwmon / "in1_label", "vddnb");
  line(paths.hwmon / "in1_input", std::to_string(m.vddnb_mv));
  fs::create_directory_symlink("../../../" + m.pci_address, paths.hwmon / "device");
  fs::create_directories(paths.sys / "class/hwmon");
  fs::create_directory_symlink("../../devices/pci0000:00/" + m.pci_parent + "/" + m.pci_address +
                                   "/hwmon/" + paths.hwmon.filename().string(),
                               paths.sys / "class/hwmon" / paths.hwmon.filename());
}

void make_buses(const TreePaths& paths, const MachineModel& m) {
  const fs::path bus = paths.sys / "bus/pci";
  fs::create_directories(bus / "devices");
  fs::create_directories(bus / "drivers/amdgpu");
  const std::string target = "devices/pci0000:00/" + m.pci_parent + "/" + m.pci_address;
  fs::create_directory_symlink("../../../" + target, bus / "devices" / m.pci_address);
  fs::create_directory_symlink("../../../../" + target, bus / "drivers/amdgpu" / m.pci_address);
  fs::create_directory_symlink("../../../../bus/pci", paths.device / "subsystem");
  fs::create_directory_symlink("../../../../bus/pci/drivers/amdgpu", paths.device / "driver");
}

void make_module(const fs::path& sys) {
  const fs::path module = sys / "module/amdgpu";
  fs::create_directories(module / "parameters");
  line(module / "initstate", "live");
  line(module / "parameters/vm_size", "-1");
}

// One bit as the kernel prints masks: groups of 32 bits in hex, the highest first.
std::string cpu_bit(long cpu) {
  std::ostringstream text;
  text << std::hex << std::setfill('0') << std::setw(8) << (1UL << (cpu % 32));
  for (long group = 0; group < cpu / 32; ++group) text << ",00000000";
  return text.str();
}

// libhsakmt 5.2 asks CPU caches of each node's cpuN/cache and gives up without (topology.c,
// topology_get_cpu_cache_props); virtual machines often have none. One node with the real
// machine's CPUs: libhsakmt indexes a table of that size with what it reads here.
void make_cpu_node(const fs::path& sys) {
  const fs::path node = sys / "devices/system/node/node0";
  const auto cpus = std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN));
  for (long cpu = 0; cpu < cpus; ++cpu) {
    const std::string number = std::to_string(cpu);
    const fs::path cache = node / ("cpu" + number) / "cache/index0";
    fs::create_directories(cache);
    line(cache / "level", "1");
    line(cache / "type", "Data");
    line(cache / "size", "32K");
    line(cache / "coherency_line_size", "64");
    line(cache / "ways_of_associativity", "8");
    line(cache / "physical_line_partition", "1");
    line(cache / "shared_cpu_list", number);
    line(cache / "shared_cpu_map", cpu_bit(cpu));
  }
  for (const char* file : {"meminfo", "cpumap", "cpulist", "distance"}) {
    const fs::path real = fs::path("/sys/devices/system/node/node0") / file;
    std::error_code missing;
    if (fs::exists(real, missing)) fs::create_symlink(real, node / file);
  }
}

// What is not of the GPU is the real machine's.
void link_real_parts(const fs::path& sys) {
  const auto link = [&](const fs::path& part) {
    std::error_code missing;
    if (!fs::exists("/sys" / part, missing)) return;
    fs::create_directories((sys / part).parent_path());
    fs::create_directory_symlink("/sys" / part, sys / part);
  };
  for (const char* part : {"devices/system/cpu", "devices/system/memory", "fs", "kernel", "power"})
    link(part);
}

}  // namespace

TreePaths::TreePaths(const fs::path& root, const MachineModel& model)
    : sys(root / "sys"),
      device(sys / "devices/pci0000:00" / model.pci_parent / model.pci_address),
      hwmon(device / "hwmon" / ("hwmon" + std::to_string(3 + model.card))),
      kfd(sys / "devices/virtual/kfd/kfd"),
      proc(kfd / "proc") {}

void put(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text << std::flush;
  if (!out) throw std::system_error(errno, std::generic_category(), file.string());
}

void make_tree(const fs::path& root, const std::vector<MachineModel>& gpus) {
  const fs::path sys = root / "sys";
  for (const MachineModel& model : gpus) {
    const TreePaths paths(root, model);
    fs::create_directories(paths.hwmon);
    fs::create_directories(paths.proc);
    make_pci_device(paths, model);
    make_drm(paths, model);
    make_hwmon(paths, model);
    make_buses(paths, model);
  }
  make_module(sys);
  make_topology(sys, gpus);
  make_cpu_node(sys);
  link_real_parts(sys);
}

}  // namespace apusched::softapu
