// SPDX-License-Identifier: MIT
#include "platform/gpu_topology.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <system_error>

#include "core/bounded.hpp"
#include "platform/small_file.hpp"

namespace apusched::platform {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxKeys = 256;
constexpr std::size_t kMaxNodes = 64;
constexpr std::size_t kMaxProcesses = 8192;
constexpr std::size_t kMaxQueues = 1024;
/// A properties file of Linux 6.12 has about 900 bytes.
constexpr std::size_t kMaxProperties = 16384;
constexpr std::uint64_t kMi300aDevice = 0x74a0;

/// Raven, Raven2, Renoir and Cezanne, Cyan Skillfish, Van Gogh, Rembrandt, Raphael, Phoenix,
/// Strix, Strix Halo, Krackan and its successor.
constexpr std::array<std::string_view, 12> kApuIsas{"gfx902",  "gfx909",  "gfx90c",  "gfx1013",
                                                    "gfx1033", "gfx1035", "gfx1036", "gfx1103",
                                                    "gfx1150", "gfx1151", "gfx1152", "gfx1153"};

std::uint64_t value_of(const KfdProperties& properties, std::string_view key) {
  const auto found = properties.find(key);
  return found == properties.end() ? 0 : found->second;
}

std::uint32_t clamp_to_32(std::uint64_t value) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

/// A decimal number; the queue files of amdkfd end without a newline, others with one.
std::optional<std::uint64_t> parse_unsigned(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  std::uint64_t value = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> read_number(const fs::path& path) {
  const auto text = read_small_file(path.string(), 64);
  return text ? parse_unsigned(*text) : std::nullopt;
}

/// Names of the numeric entries of a directory, at most `limit`, in numeric order.
std::vector<std::int64_t> numeric_entries(const fs::path& directory, std::size_t limit) {
  std::vector<std::int64_t> found;
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  while (!error && entry != fs::directory_iterator() && found.size() < limit) {
    if (const auto number = core::parse_integer(entry->path().filename().string()))
      found.push_back(*number);
    entry.increment(error);
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Calls `seen(gpu_id)` for each compute queue of one process.
template <typename Seen>
void for_each_compute_queue(const fs::path& process, Seen&& seen) {
  const fs::path queues = process / "queues";
  for (const auto id : numeric_entries(queues, kMaxQueues)) {
    const fs::path queue = queues / std::to_string(id);
    // 0 is KFD_QUEUE_TYPE_COMPUTE; SDMA queues do not occupy a compute queue slot.
    if (read_number(queue / "type") != std::uint64_t{0}) continue;
    const auto gpu = read_number(queue / "gpuid");
    if (gpu && *gpu <= std::numeric_limits<std::uint32_t>::max())
      seen(static_cast<std::uint32_t>(*gpu));
  }
}

}  // namespace

KfdProperties parse_kfd_properties(std::string_view text) {
  KfdProperties properties;
  while (!text.empty() && properties.size() < kMaxKeys) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const auto blank = line.find(' ');
    if (blank == std::string_view::npos || blank == 0) continue;
    if (const auto value = parse_unsigned(line.substr(blank + 1)))
      properties.insert_or_assign(std::string(line.substr(0, blank)), *value);
  }
  return properties;
}

std::optional<std::string> isa_name(std::uint64_t version) {
  const auto major = version / 10000;
  const auto minor = version / 100 % 100;
  const auto stepping = version % 100;
  if (major < 1 || major > 99 || minor > 15 || stepping > 15) return std::nullopt;
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "gfx%u%x%x", static_cast<unsigned>(major),
                static_cast<unsigned>(minor), static_cast<unsigned>(stepping));
  return text.data();
}

std::optional<core::PciAddress> kfd_pci_address(const KfdProperties& properties) {
  const auto domain = value_of(properties, "domain");
  const auto location = value_of(properties, "location_id");
  if (domain > 0xffff || location > 0xffff) return std::nullopt;
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", static_cast<unsigned>(domain),
                static_cast<unsigned>(location >> 8U),
                static_cast<unsigned>((location >> 3U) & 0x1fU),
                static_cast<unsigned>(location & 7U));
  return core::PciAddress::parse(text.data());
}

bool is_apu(const KfdProperties& properties) {
  if (value_of(properties, "cpu_cores_count") > 0 && value_of(properties, "simd_count") > 0)
    return true;
  const auto isa = isa_name(value_of(properties, "gfx_target_version"));
  if (!isa) return false;
  if (*isa == "gfx942") return value_of(properties, "device_id") == kMi300aDevice;
  return std::find(kApuIsas.begin(), kApuIsas.end(), *isa) != kApuIsas.end();
}

/// `array_count` is that of all engines and, with several XCCs, of all these too.
core::CuGeometry cu_geometry(const KfdProperties& properties) {
  constexpr std::uint64_t kFirstWithPairs = 100000;  // gfx10
  constexpr std::uint64_t kMost = 64;
  const auto at_least_one = [&](const char* key) {
    return std::clamp<std::uint64_t>(value_of(properties, key), 1, kMost);
  };
  const auto per_cu = value_of(properties, "simd_per_cu");
  const auto arrays = at_least_one("array_count");
  const auto per_engine = at_least_one("simd_arrays_per_engine");
  const auto xccs = at_least_one("num_xcc");
  core::CuGeometry geometry;
  geometry.compute_units =
      per_cu == 0 ? 0 : clamp_to_32(value_of(properties, "simd_count") / per_cu);
  geometry.arrays_per_engine = clamp_to_32(per_engine);
  geometry.xccs = clamp_to_32(xccs);
  geometry.engines = clamp_to_32(std::max<std::uint64_t>(1, arrays / per_engine / xccs));
  geometry.paired = value_of(properties, "gfx_target_version") >= kFirstWithPairs;
  return geometry;
}

std::optional<ports::GpuFacts> parse_gpu_node(std::string_view properties_text,
                                              std::string_view gpu_id_text) {
  const auto properties = parse_kfd_properties(properties_text);
  const auto gpu_id = parse_unsigned(gpu_id_text);
  const auto simds = value_of(properties, "simd_count");
  const auto isa = isa_name(value_of(properties, "gfx_target_version"));
  const auto pci = kfd_pci_address(properties);
  if (simds == 0 || !gpu_id || *gpu_id == 0 || !isa || !pci) return std::nullopt;
  if (*gpu_id > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  ports::GpuFacts facts{*pci, *isa, *isa};
  facts.geometry = cu_geometry(properties);
  facts.compute_units = facts.geometry.compute_units;
  facts.kfd_gpu_id = static_cast<std::uint32_t>(*gpu_id);
  facts.queue_limit = clamp_to_32(value_of(properties, "num_cp_queues"));
  facts.apu = is_apu(properties);
  return facts;
}

KfdTopology::KfdTopology(std::string sysfs_root) : kfd_(std::move(sysfs_root) + "/class/kfd/kfd") {}

std::vector<ports::GpuFacts> KfdTopology::discover(std::string& why_none) {
  const fs::path nodes = fs::path(kfd_) / "topology/nodes";
  const auto numbers = numeric_entries(nodes, kMaxNodes);
  std::vector<ports::GpuFacts> found;
  for (const auto number : numbers) {
    const fs::path node = nodes / std::to_string(number);
    const auto properties = read_small_file((node / "properties").string(), kMaxProperties);
    const auto gpu_id = read_small_file((node / "gpu_id").string(), 64);
    if (!properties || !gpu_id) continue;
    if (auto facts = parse_gpu_node(*properties, *gpu_id)) found.push_back(std::move(*facts));
  }
  why_none.clear();
  if (found.empty())
    why_none = numbers.empty() ? "no " + nodes.string() + ": the amdkfd driver is not loaded"
                               : "the KFD topology lists no GPU that this process may use";
  return found;
}

bool KfdTopology::present(std::uint32_t kfd_gpu_id) {
  const fs::path nodes = fs::path(kfd_) / "topology/nodes";
  return std::ranges::any_of(numeric_entries(nodes, kMaxNodes), [&](std::int64_t number) {
    return read_number(nodes / std::to_string(number) / "gpu_id") == kfd_gpu_id;
  });
}

std::vector<std::uint32_t> KfdTopology::queue_gpu_ids(core::Pid pid) {
  std::vector<std::uint32_t> found;
  for_each_compute_queue(fs::path(kfd_) / "proc" / core::to_string(pid),
                         [&found](std::uint32_t gpu) { found.push_back(gpu); });
  return found;
}

std::uint32_t KfdTopology::queue_count(std::uint32_t kfd_gpu_id) {
  const fs::path processes = fs::path(kfd_) / "proc";
  std::uint32_t count = 0;
  for (const auto pid : numeric_entries(processes, kMaxProcesses))
    for_each_compute_queue(processes / std::to_string(pid),
                           [&](std::uint32_t gpu) { count += gpu == kfd_gpu_id ? 1U : 0U; });
  return count;
}

}  // namespace apusched::platform
