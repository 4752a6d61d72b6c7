// SPDX-License-Identifier: MIT
// Order and names of the properties: kfd_topology.c of Linux 6.12, node_show() and its siblings.
#include "sysfs/topology.h"

#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace apusched::softapu {
namespace fs = std::filesystem;
namespace {

using Properties = std::vector<std::pair<std::string_view, std::uint64_t>>;

// processor ids of GPU nodes start here (kfd_crat.c)
constexpr std::uint64_t kSimdBase = 0x80001000;

void put_properties(const fs::path& file, const Properties& properties,
                    const std::string& tail = "") {
  std::ostringstream text;
  for (const auto& [name, value] : properties) text << name << ' ' << value << '\n';
  text << tail;
  put(file, text.str());
}

struct NodeKind {
  bool cpu = false, gpu = false;
  std::uint64_t links = 1;
};

Properties node_properties(const MachineModel& m, NodeKind kind, std::size_t caches) {
  const bool gpu = kind.gpu;
  const DeviceDescription& d = m.device;
  const auto g = [gpu](std::uint64_t value) { return gpu ? value : 0; };
  const std::uint32_t arrays = d.xccs * d.shader_engines * d.arrays_per_engine;
  Properties p = {
      {"cpu_cores_count", kind.cpu ? m.cpu_cores : 0},
      {"simd_count", g(std::uint64_t{d.compute_units} * d.simds_per_cu)},
      {"mem_banks_count", 1},
      {"caches_count", caches},
      {"io_links_count", kind.links},
      {"p2p_links_count", 0},
      {"cpu_core_id_base", 0},
      {"simd_id_base", g(kSimdBase)},
      {"max_waves_per_simd", g(m.max_waves_per_simd)},
      {"lds_size_in_kb", g(m.lds_kib)},
      {"gds_size_in_kb", 0},
      {"num_gws", g(m.gws)},
      {"wave_front_size", g(m.wave_size)},
      {"array_count", g(arrays)},
      {"simd_arrays_per_engine", g(d.arrays_per_engine)},
      {"cu_per_simd_array", g((d.compute_units + arrays - 1) / arrays)},
      {"simd_per_cu", g(d.simds_per_cu)},
      {"max_slots_scratch_cu", g(m.max_scratch_slots_per_cu)},
      {"gfx_target_version", g(d.gfx_major * 10000 + m.gfx_minor * 100 + m.gfx_stepping)},
      {"vendor_id", g(0x1002)},
      {"device_id", g(std::stoul(m.pci_device, nullptr, 16))},
      {"location_id", g(m.pci_location())},
      {"domain", g(m.pci_domain())},
      {"drm_render_minor", g(d.drm_render_minor)},
      {"hive_id", 0},
      {"num_sdma_engines", g(m.sdma_engines)},
      {"num_sdma_xgmi_engines", 0},
      {"num_sdma_queues_per_engine", g(m.sdma_queues_per_engine)},
      {"num_cp_queues", g(d.num_cp_queues)},
  };
  if (gpu) {
    p.insert(p.end(),
             {{"max_engine_clk_fcompute", d.sclk.mhz[d.sclk.count - 1]},
              {"local_mem_size", 0},
              {"fw_version", m.mec_firmware},
              {"capability", m.capability},
              {"debug_prop", 0},
              {"sdma_fw_version", m.sdma_firmware},
              {"unique_id",
               m.unique_id && !m.unique_id->empty() ? std::stoull(*m.unique_id, nullptr, 16) : 0},
              {"num_xcc", d.xccs}});
  }
  p.emplace_back("max_engine_clk_ccompute", m.cpu_max_mhz);
  return p;
}

std::size_t instances(const CacheModel& cache, const DeviceDescription& d) {
  switch (cache.per) {
    case CacheModel::Per::cu:
      return d.compute_units;
    case CacheModel::Per::array:
      return std::size_t{d.xccs} * d.shader_engines * d.arrays_per_engine;
    case CacheModel::Per::device:
      return 1;
  }
  return 0;
}

struct Cache {
  std::uint64_t processor, level, kib, line, type;
  std::size_t shared_by;
};
constexpr std::uint64_t kDataOfCpu = 5;    // HSA_CACHE_TYPE_DATA | _CPU
constexpr std::uint64_t kDataOfSimds = 9;  // HSA_CACHE_TYPE_DATA | _HSACU

void make_cache(const fs::path& node, std::size_t number, const Cache& cache) {
  std::string siblings = "sibling_map ";
  for (std::size_t i = 0; i < cache.shared_by; i++) siblings += i == 0 ? "1" : ",1";
  const fs::path dir = node / "caches" / std::to_string(number);
  fs::create_directories(dir);
  put_properties(dir / "properties",
                 {{"processor_id_low", cache.processor},
                  {"level", cache.level},
                  {"size", cache.kib},
                  {"cache_line_size", cache.line},
                  {"cache_lines_per_tag", 1},
                  {"association", 16},
                  {"latency", 0},
                  {"type", cache.type}},
                 siblings + "\n");
}

// How many there are afterwards.
std::size_t make_caches(const fs::path& node, const MachineModel& m, std::size_t number = 0) {
  for (const CacheModel& cache : m.caches) {
    const std::size_t count = instances(cache, m.device);
    const std::size_t share = m.device.compute_units / count;
    for (std::size_t i = 0; i < count; i++)
      make_cache(node, number++,
                 {kSimdBase + i * share, cache.level, cache.kib, cache.line, kDataOfSimds, share});
  }
  return number;
}

// A CRAT table lists those of the CPUs too, and libhsakmt then looks nowhere else.
std::size_t make_cpu_caches(const fs::path& node, const MachineModel& m) {
  for (std::uint32_t cpu = 0; cpu < m.cpu_cores; cpu++)
    make_cache(node, cpu, {cpu, 1, 32, 64, kDataOfCpu, 1});
  make_cache(node, m.cpu_cores, {0, 3, 4096, 64, kDataOfCpu, m.cpu_cores});
  return m.cpu_cores + 1;
}

void make_link(const fs::path& node, std::uint64_t number, std::uint64_t from, std::uint64_t to) {
  constexpr std::uint64_t kPcie = 2;
  const fs::path link = node / "io_links" / std::to_string(number);
  fs::create_directories(link);
  put_properties(link / "properties", {{"type", kPcie},
                                       {"version_major", 0},
                                       {"version_minor", 0},
                                       {"node_from", from},
                                       {"node_to", to},
                                       {"weight", 20},
                                       {"min_latency", 0},
                                       {"max_latency", 0},
                                       {"min_bandwidth", 0},
                                       {"max_bandwidth", 16000},
                                       {"recommended_transfer_size", 0},
                                       {"flags", from == 0 ? 3 : 1}});
}

void make_bank(const fs::path& node, std::uint64_t heap, std::uint64_t bytes, std::uint64_t width,
               std::uint64_t mhz) {
  fs::create_directories(node / "mem_banks/0");
  put_properties(node / "mem_banks/0/properties", {{"heap_type", heap},
                                                   {"size_in_bytes", bytes},
                                                   {"flags", 0},
                                                   {"width", width},
                                                   {"mem_clk_max", mhz}});
}

constexpr std::uint64_t kSystemHeap = 0;
constexpr std::uint64_t kVisibleVramHeap = 1;

std::uint32_t top_mclk(const MachineModel& m) {
  return m.device.mclk.mhz[m.device.mclk.count - 1];
}

void make_node(const fs::path& node) {
  for (const char* part : {"caches", "p2p_links", "io_links", "mem_banks"})
    fs::create_directories(node / part);
}

void make_cpu_node(const fs::path& node, const std::vector<MachineModel>& gpus) {
  make_node(node);
  put(node / "gpu_id", "0\n");
  put(node / "name", "\n");
  make_bank(node, kSystemHeap, gpus[0].cpu_memory_bytes, 64, top_mclk(gpus[0]));
  for (std::size_t i = 0; i < gpus.size(); i++) make_link(node, i, 0, i + 1);
  put_properties(node / "properties", node_properties(gpus[0], {true, false, gpus.size()}, 0));
}

void make_gpu_node(const fs::path& node, const MachineModel& m, std::uint64_t number) {
  make_node(node);
  put(node / "gpu_id", std::to_string(m.device.gpu_id) + "\n");
  put(node / "name", m.node_name + "\n");
  make_bank(node, kVisibleVramHeap, m.device.kfd_pool_bytes, m.memory_width_bits, top_mclk(m));
  make_link(node, 0, number, 0);
  const std::size_t caches = make_caches(node, m);
  put_properties(node / "properties", node_properties(m, {false, true, 1}, caches));
}

// CPUs and SIMDs in one node, with the system's memory only: what kernels made of a CRAT table as
// long as they had IOMMUv2.
void make_merged_node(const fs::path& node, const MachineModel& m) {
  make_node(node);
  put(node / "gpu_id", std::to_string(m.device.gpu_id) + "\n");
  put(node / "name", m.node_name + "\n");
  make_bank(node, kSystemHeap, m.cpu_memory_bytes, 64, top_mclk(m));
  const std::size_t caches = make_caches(node, m, make_cpu_caches(node, m));
  put_properties(node / "properties", node_properties(m, {true, true, 0}, caches));
}

}  // namespace

void make_topology(const fs::path& sys, const std::vector<MachineModel>& gpus) {
  const fs::path kfd = sys / "devices/virtual/kfd/kfd";
  const fs::path nodes = kfd / "topology/nodes";
  if (gpus[0].merged_node) {
    make_merged_node(nodes / "0", gpus[0]);
  } else {
    make_cpu_node(nodes / "0", gpus);
    for (std::size_t i = 0; i < gpus.size(); i++)
      make_gpu_node(nodes / std::to_string(i + 1), gpus[i], i + 1);
  }
  put(kfd / "topology/generation_id", "2\n");
  put_properties(kfd / "topology/system_properties",
                 {{"platform_oem", 0}, {"platform_id", 0}, {"platform_rev", 2}});
  fs::create_directories(sys / "class/kfd");
  fs::create_directory_symlink("../../devices/virtual/kfd/kfd", sys / "class/kfd/kfd");
  put(kfd / "dev", "237:0\n");
  put(kfd / "uevent", "MAJOR=237\nMINOR=0\nDEVNAME=kfd\n");
}

}  // namespace apusched::softapu
