// SPDX-License-Identifier: MIT
// The moving files of the tree: sensors, clocks, memory, and class/kfd/kfd/proc. Owner: the
// supervisor; nobody else writes them (power_dpm_force_performance_level: anybody).
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "device/state.h"
#include "sysfs/tree.h"

namespace apusched::softapu {

struct Readings {
  std::uint32_t sclk_index = 0, mclk_index = 0;
  std::uint32_t busy_percent = 0;
  double power_w = 0, temperature_c = 0;
  std::uint64_t vram_used = 0, gtt_used = 0;  // of clients, by KFD's flags
  Level level = Level::automatic;
};

class LiveTree {
 public:
  LiveTree(TreePaths paths, const MachineModel& model);

  // First-order sensor model: power follows load and clock, temperature follows power.
  void update_sensors(DeviceState& state, double busy, std::chrono::duration<double> elapsed) const;
  // Rewrites the files whose text changed.
  void show(const Readings& readings);
  void show_level(Level level);
  // The level as somebody may have written it.
  [[nodiscard]] std::string read_level() const;
  [[nodiscard]] std::filesystem::path level_file() const;

  void add_process(std::uint32_t pid, std::uint32_t pasid);
  void remove_process(std::uint32_t pid);
  void add_queue(std::uint32_t pid, std::uint32_t queue, std::uint32_t ring_bytes);
  void remove_queue(std::uint32_t pid, std::uint32_t queue);
  void show_process_memory(std::uint32_t pid, std::uint64_t vram_used);

 private:
  void rewrite(const std::filesystem::path& file, const std::string& text);
  [[nodiscard]] std::string clock_table(const DpmTable& table, std::uint32_t current) const;

  TreePaths paths_;
  const MachineModel& model_;
  std::map<std::filesystem::path, std::string> shown_;
};

}  // namespace apusched::softapu
