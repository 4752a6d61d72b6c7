// SPDX-License-Identifier: MIT
// The moving files of the tree: sensors, clocks, memory, and class/kfd/kfd/proc. Owner: the
// supervisor; nobody else writes them (power_dpm_force_performance_level: anybody).
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "sysfs/readings.h"
#include "sysfs/traps.h"
#include "sysfs/tree.h"

namespace apusched::softapu {

class LiveTree {
 public:
  // `first`: of the GPU that makes and removes proc/<pid>; that of another adds to it.
  LiveTree(TreePaths paths, const MachineModel& model, Traps traps = {}, bool first = true);

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
  [[nodiscard]] std::string shader_clock_table(std::uint32_t mhz) const;
  [[nodiscard]] std::string memory_clock_table(std::uint32_t current) const;
  [[nodiscard]] std::string rows(const DpmTable& table, std::uint32_t current) const;
  [[nodiscard]] std::string overdrive_table() const;
  void show_sensors(const Readings& readings);

  TreePaths paths_;
  const MachineModel& model_;
  Traps traps_;
  bool first_;
  std::map<std::filesystem::path, std::string> shown_;
};

}  // namespace apusched::softapu
