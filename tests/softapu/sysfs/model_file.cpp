// SPDX-License-Identifier: MIT
#include "sysfs/model_file.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "device/cu_map.h"
#include "device/model.h"

namespace apusched::softapu {
namespace {

using nlohmann::json;

template <std::size_t N>
void copy_text(std::array<char, N>& out, const std::string& text) {
  if (text.size() >= N) throw ModelError("\"" + text + "\" is too long");
  std::copy(text.begin(), text.end(), out.begin());
}

DpmTable read_table(const json& rows) {
  DpmTable table;
  if (rows.empty() || rows.size() > kMaxDpmStates) throw ModelError("clock table: 1 to 8 rows");
  for (const json& row : rows) table.mhz[table.count++] = row.get<std::uint32_t>();
  return table;
}

std::uint32_t read_levels(const json& names) {
  std::uint32_t mask = 0;
  for (const json& name : names) {
    const auto level = parse_level(name.get<std::string>());
    if (!level) throw ModelError("unknown level " + name.dump());
    mask |= 1U << static_cast<unsigned>(*level);
  }
  return mask;
}

std::vector<CacheModel> read_caches(const json& list) {
  std::vector<CacheModel> caches;
  for (const json& entry : list) {
    CacheModel cache;
    cache.level = entry.at("level");
    cache.kib = entry.at("kib");
    cache.line = entry.at("line");
    const std::string per = entry.at("per");
    if (per == "cu")
      cache.per = CacheModel::Per::cu;
    else if (per == "array")
      cache.per = CacheModel::Per::array;
    else if (per != "device")
      throw ModelError("caches: per: expected cu, array or device, got " + per);
    caches.push_back(cache);
  }
  return caches;
}

void read_shader(const json& file, MachineModel& m) {
  const json& gfx = file.at("gfx");
  copy_text(m.device.gfx_name, gfx.at("name"));
  m.device.gfx_major = gfx.at("major");
  m.gfx_minor = gfx.at("minor");
  m.gfx_stepping = gfx.at("stepping");
  const json& shader = file.at("shader");
  m.device.compute_units = shader.at("compute_units");
  m.device.shader_engines = shader.at("shader_engines");
  m.device.arrays_per_engine = shader.at("arrays_per_engine");
  m.device.simds_per_cu = shader.at("simds_per_cu");
  m.wave_size = shader.at("wave_size");
  m.max_waves_per_simd = shader.at("max_waves_per_simd");
  m.max_scratch_slots_per_cu = shader.at("max_scratch_slots_per_cu");
  m.device.wave_size = m.wave_size;
  m.device.wave_slots_per_cu = m.device.simds_per_cu * m.max_waves_per_simd;
  if (m.wave_size == 0) throw ModelError("shader: wave_size is 0");
  m.lds_kib = shader.at("lds_kib");
  m.gws = shader.at("gws");
  m.capability = shader.at("capability");
  if (const auto xccs = shader.find("xccs"); xccs != shader.end()) m.device.xccs = *xccs;
  if (const auto units = shader.find("units_per_array"); units != shader.end()) {
    if (units->size() > kMaxArrays) throw ModelError("shader: units_per_array: too many");
    std::copy(units->begin(), units->end(), m.device.units_per_array.begin());
  }
  if (m.device.simds_per_cu == 0 || m.device.compute_units == 0)
    throw ModelError("shader: no compute units");
  if (!place_units(m.device))
    throw ModelError("shader: XCCs, engines, arrays and their units do not make " +
                     std::to_string(m.device.compute_units) + " compute units");
}

std::uint32_t from_hex(const std::string& text) {
  return static_cast<std::uint32_t>(std::stoul(text, nullptr, 16));
}

void read_pci(const json& file, MachineModel& m) {
  const json& pci = file.at("pci");
  m.pci_address = pci.at("address");
  m.pci_parent = pci.at("parent");
  m.pci_device = pci.at("device");
  m.pci_revision = pci.at("revision");
  m.device.pci_device = from_hex(m.pci_device);
  m.device.pci_revision = from_hex(m.pci_revision);
  m.subsystem_vendor = pci.at("subsystem_vendor");
  m.subsystem_device = pci.at("subsystem_device");
  m.link_speed = pci.at("link_speed");
  m.link_width = pci.at("link_width");
  unsigned part[4];
  if (std::sscanf(m.pci_address.c_str(), "%4x:%2x:%2x.%1x", &part[0], &part[1], &part[2],
                  &part[3]) != 4)
    throw ModelError("pci: address: expected dddd:bb:dd.f, got " + m.pci_address);
  copy_text(m.device.pci_address, m.pci_address);
  m.card = file.at("drm").at("card");
  m.device.drm_card = m.card;
  m.device.drm_render_minor = file.at("drm").at("render_minor");
}

void read_memory_and_clocks(const json& file, MachineModel& m) {
  const json& cpu = file.at("cpu");
  m.cpu_cores = cpu.at("cores");
  m.cpu_max_mhz = cpu.at("max_mhz");
  m.cpu_memory_bytes = cpu.at("memory_bytes");
  const json& clocks = file.at("clocks");
  m.device.reference_sclk_mhz = clocks.at("reference_sclk_mhz");
  m.device.sclk = read_table(clocks.at("sclk_mhz"));
  m.device.mclk = read_table(clocks.at("mclk_mhz"));
  if (m.device.reference_sclk_mhz == 0) throw ModelError("clocks: reference_sclk_mhz is 0");
  const json& memory = file.at("memory");
  m.device.vram_bytes = memory.at("vram_bytes");
  m.device.gtt_bytes = memory.at("gtt_bytes");
  m.device.kfd_pool_bytes = memory.at("kfd_pool_bytes");
  m.device.vram_base_used = memory.at("vram_base_used");
  m.device.gtt_base_used = memory.at("gtt_base_used");
  m.kfd_vram_is_gtt = memory.at("kfd_vram_is_gtt");
  m.memory_width_bits = memory.at("width_bits");
}

void read_power(const json& file, MachineModel& m) {
  const json& power = file.at("power");
  PowerDescription& p = m.device.power;
  p.idle_w = power.at("idle_w");
  p.gfx_w = power.at("gfx_w");
  p.cpu_w = power.at("cpu_w");
  p.tdp_w = power.at("tdp_w");
  p.ambient_c = power.at("ambient_c");
  p.c_per_w = power.at("c_per_w");
  p.limit_c = power.at("limit_c");
  p.thermal_time_ms = power.at("thermal_time_ms");
  p.ramp_mhz_per_ms = power.at("ramp_mhz_per_ms");
  p.gfxoff_after_us = power.at("gfxoff_after_us");
  p.gfxoff_wake_us = power.at("gfxoff_wake_us");
  p.queues_forbid_gfxoff = power.at("queues_forbid_gfxoff").get<bool>() ? 1 : 0;
  p.two_clients_pin_clock = power.at("two_clients_pin_clock").get<bool>() ? 1 : 0;
  if (p.gfx_w < 0 || p.cpu_w < 0 || p.idle_w < 0 || p.c_per_w < 0)
    throw ModelError("power: watts and c_per_w: expected 0 or more");
}

MetricsFormat read_metrics_format(const std::string& name) {
  for (const auto& [format, text] : kMetricsFormats)
    if (text == name) return format;
  throw ModelError("sensors: gpu_metrics: expected none, 1.5, 2.1, 2.2 or 3.0, got " + name);
}

void read_rest(const json& file, MachineModel& m) {
  m.mec_firmware = file.at("firmware").at("mec");
  m.sdma_firmware = file.at("firmware").at("sdma");
  m.vbios = file.at("firmware").at("vbios");
  const json& queues = file.at("queues");
  m.device.num_cp_queues = queues.at("num_cp_queues");
  m.device.queue_quantum_us = queues.at("quantum_us");
  m.device.remap_us = queues.at("remap_us");
  m.device.mes = queues.at("mes").get<bool>() ? 1 : 0;
  m.sdma_engines = queues.at("sdma_engines");
  m.sdma_queues_per_engine = queues.at("sdma_queues_per_engine");
  m.device.max_in_flight_per_queue = queues.at("max_in_flight");
  if (m.device.max_in_flight_per_queue == 0 || m.device.max_in_flight_per_queue > kMaxInFlight)
    throw ModelError("queues: max_in_flight: expected 1 to 8");
  m.caches = read_caches(file.at("caches"));
  const json& timing = file.at("timing");
  m.device.dispatch_overhead_ns = timing.at("dispatch_overhead_ns");
  m.device.workgroup_ns = timing.at("workgroup_ns");
  m.device.copy_bytes_per_us = timing.at("copy_bytes_per_us");
  m.device.load_time_constant_us = timing.at("load_time_constant_us");
  const json& sensors = file.at("sensors");
  m.power_file = sensors.at("power_file");
  m.power_label = sensors.at("power_label");
  m.metrics = read_metrics_format(sensors.at("gpu_metrics"));
  m.vddgfx_mv = sensors.at("vddgfx_mv");
  m.vddnb_mv = sensors.at("vddnb_mv");
  const json& quirks = file.at("quirks");
  m.device.allowed_levels = read_levels(quirks.at("levels"));
  if (!quirks.at("unique_id").is_null()) m.unique_id = quirks.at("unique_id").get<std::string>();
  m.od_sclk = quirks.at("od_sclk");
  m.cu_occupancy = quirks.at("cu_occupancy");
  m.merged_node = quirks.value("merged_node", false);
  m.has_temp1 = quirks.value("temp1", true);
  m.device.discrete = quirks.value("discrete", false) ? 1 : 0;
}

}  // namespace

std::uint32_t MachineModel::pci_domain() const {
  return static_cast<std::uint32_t>(std::stoul(pci_address.substr(0, 4), nullptr, 16));
}

std::uint32_t MachineModel::pci_location() const {
  const auto field = [this](std::size_t at, std::size_t length) {
    return static_cast<std::uint32_t>(std::stoul(pci_address.substr(at, length), nullptr, 16));
  };
  return field(5, 2) << 8 | field(8, 2) << 3 | field(11, 1);
}

namespace {

json parse_file(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw ModelError(path + ": cannot be read");
  return json::parse(in);
}

MachineModel from_json(const json& file) {
  MachineModel m;
  m.name = file.at("model");
  m.node_name = file.at("node_name");
  m.device.gpu_id = file.at("gpu_id");
  copy_text(m.device.marketing_name, file.at("marketing_name"));
  read_shader(file, m);
  read_pci(file, m);
  read_memory_and_clocks(file, m);
  read_rest(file, m);
  read_power(file, m);
  return m;
}

// Each entry names a model beside this file and may replace parts of it (RFC 7386).
std::vector<MachineModel> read_machine_list(const json& entries, const std::string& path) {
  std::vector<MachineModel> gpus;
  for (const json& entry : entries) {
    const std::string name = entry.at("model");
    if (name.find('/') != std::string::npos) throw ModelError("machine: model: no path is allowed");
    json file = parse_file(std::filesystem::path(path).parent_path() / (name + ".json"));
    file.merge_patch(entry);
    gpus.push_back(from_json(file));
    if (gpus.back().merged_node && entries.size() > 1)
      throw ModelError("machine: a merged node has no other GPU beside it");
  }
  if (gpus.empty() || gpus.size() > kMaxGpus)
    throw ModelError("machine: expected 1 to " + std::to_string(kMaxGpus) + " models");
  return gpus;
}

}  // namespace

std::vector<MachineModel> read_machine(const std::string& path) {
  try {
    const json file = parse_file(path);
    if (const auto list = file.find("machine"); list != file.end())
      return read_machine_list(*list, path);
    return {from_json(file)};
  } catch (const json::exception& error) {
    throw ModelError(path + ": " + error.what());
  } catch (const ModelError& error) {
    const std::string what = error.what();
    throw ModelError(what.starts_with(path) ? what : path + ": " + what);
  }
}

MachineModel read_model(const std::string& path) {
  std::vector<MachineModel> gpus = read_machine(path);
  if (gpus.size() != 1) throw ModelError(path + ": expected one GPU");
  return std::move(gpus.front());
}

}  // namespace apusched::softapu
