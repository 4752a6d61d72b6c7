// SPDX-License-Identifier: MIT
// A model file: the one description of the machine, from which both the KFD answers and the /sys
// tree are made.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/state.h"
#include "sysfs/gpu_metrics.h"

namespace apusched::softapu {

inline constexpr std::size_t kMaxGpus = 4;

// The file is missing, is no JSON, or lacks or misuses a key; what() names file and key.
class ModelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct CacheModel {
  std::uint32_t level = 0, kib = 0, line = 0;
  enum class Per : std::uint8_t { cu, array, device } per = Per::device;
};

struct MachineModel {
  std::string name;
  std::string node_name;
  std::uint32_t gfx_minor = 0, gfx_stepping = 0;
  std::uint32_t wave_size = 0, max_waves_per_simd = 0, max_scratch_slots_per_cu = 0;
  std::uint32_t lds_kib = 0, gws = 0, capability = 0;
  std::string pci_address, pci_parent, pci_device, pci_revision;
  std::string subsystem_vendor, subsystem_device, link_speed;
  std::uint32_t link_width = 0;
  std::uint32_t card = 0;
  std::uint32_t cpu_cores = 0, cpu_max_mhz = 0;
  std::uint64_t cpu_memory_bytes = 0;
  std::uint32_t memory_width_bits = 0;
  bool kfd_vram_is_gtt = true;
  std::uint32_t mec_firmware = 0, sdma_firmware = 0;
  std::string vbios;
  std::uint32_t sdma_engines = 0, sdma_queues_per_engine = 0;
  std::vector<CacheModel> caches;
  std::string power_file, power_label;
  MetricsFormat metrics = MetricsFormat::none;
  std::uint32_t vddgfx_mv = 0, vddnb_mv = 0;
  std::optional<std::string> unique_id;
  bool od_sclk = false;  // has pp_od_clk_voltage
  bool cu_occupancy = false;
  bool merged_node = false;  // CPUs and SIMDs in one KFD node (IOMMUv2)
  bool has_temp1 = true;
  DeviceDescription device;

  // Parts of pci_address, which the file reader has checked.
  [[nodiscard]] std::uint32_t pci_domain() const;
  [[nodiscard]] std::uint32_t pci_location() const;  // bus << 8 | device << 3 | function
};

// The GPUs of a machine: of a model file one, of a file with "machine" what that lists. Throws
// ModelError.
[[nodiscard]] std::vector<MachineModel> read_machine(const std::string& path);
// Of a file with one GPU. Throws ModelError.
[[nodiscard]] MachineModel read_model(const std::string& path);

}  // namespace apusched::softapu
