// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "ports/gpu.hpp"

namespace apusched::platform {

/// Pure parsers of amdkfd's topology files (linux drivers/gpu/drm/amd/amdkfd/kfd_topology.c).

/// "key value" lines of nodes/N/properties; lines of another form are ignored. At most 256 keys.
using KfdProperties = std::map<std::string, std::uint64_t, std::less<>>;
[[nodiscard]] KfdProperties parse_kfd_properties(std::string_view text);

/// gfx_target_version is decimal MMmmss; the stepping is a hex letter in the name:
/// 100305 → "gfx1035", 90012 → "gfx90c". Nothing for 0 (a CPU node) and for nonsense.
[[nodiscard]] std::optional<std::string> isa_name(std::uint64_t gfx_target_version);

/// The PCI address in a node's domain and location_id (bus << 8 | device << 3 | function).
[[nodiscard]] std::optional<core::PciAddress> kfd_pci_address(const KfdProperties& properties);

/// Whether a GPU node is an APU. Rule: its ISA has only ever been built into APUs; or it is gfx942
/// with MI300A's PCI id 0x74a0 (MI300X shares the ISA); or CPU and GPU are one node, as kernels
/// with IOMMUv2 showed it. Limit: an APU with an ISA newer than this list counts as discrete. The
/// driver's own flag (AMDGPU_IDS_FLAGS_FUSION) needs the render node opened, which wakes the GPU.
[[nodiscard]] bool is_apu(const KfdProperties& properties);

[[nodiscard]] core::CuGeometry cu_geometry(const KfdProperties& properties);

/// A GPU node, or nothing for a CPU node and for a node without a usable address or gpu_id.
[[nodiscard]] std::optional<ports::GpuFacts> parse_gpu_node(std::string_view properties,
                                                            std::string_view gpu_id);

/// ports::GpuTopology over the files below `sysfs_root`. They are formatted by amdkfd from memory
/// and never wait for the hardware. Event-loop thread; keeps no state. Malformed files are
/// skipped. Bounds: 64 nodes, 8192 processes, 1024 queues per process.
class KfdTopology final : public ports::GpuTopology {
 public:
  explicit KfdTopology(std::string sysfs_root = "/sys");

  [[nodiscard]] std::vector<ports::GpuFacts> discover(std::string& why_none) override;
  [[nodiscard]] bool present(std::uint32_t kfd_gpu_id) override;
  [[nodiscard]] std::vector<std::uint32_t> queue_gpu_ids(core::Pid pid) override;
  [[nodiscard]] std::uint32_t queue_count(std::uint32_t kfd_gpu_id) override;

 private:
  std::string kfd_;  ///< SYSFS_ROOT/class/kfd/kfd
};

}  // namespace apusched::platform
