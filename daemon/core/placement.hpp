// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/lever.hpp"
#include "core/types.hpp"

namespace apusched::core {

/// Where the scheduler has put a process, as read from /proc and the cgroup tree.
struct Placement {
  /// Path of the nearest ancestor that has its own cpu group; "/" is the root group, which the
  /// autogroup of the session subdivides.
  std::string cpu_group = "/";
  bool autogroup_enabled = false;        ///< /proc/sys/kernel/sched_autogroup_enabled
  std::optional<std::string> autogroup;  ///< "/autogroup-88"
  bool sched_ext_active = false;         ///< a BPF scheduler may ignore weights
  std::string unified = {};              ///< path in the cgroup v2 tree; empty where there is none

  bool operator==(const Placement&) const = default;
};

/// Whether one CPU lever can act for a process placed there, and against whom, or why not.
struct LeverReach {
  bool acts = false;
  std::string explanation;
};

/// The scheduler compares siblings level by level: nice counts among threads of one group only,
/// an autogroup's nice only while no cpu cgroup overrides it, a weight only between cgroups
/// (sched(7); measured: nice -20 across groups leaves p99 unchanged, the group's weight cuts it
/// by 88-96 %).
[[nodiscard]] LeverReach reach_of(LeverKind kind, const Placement& placement);

/// One step of a unit's way down from the root of the cgroup tree.
struct SliceStep {
  std::string slice;  ///< "apu-left.slice", a unit of systemd like any other
  std::string path;   ///< "/apu.slice/apu-left.slice"
  std::string child;  ///< the group below it on the way, "llama.service"
  bool operator==(const SliceStep&) const = default;
};
/// The slices above a unit, the nearest first; none where the path does not lead through slices
/// only (another service manager's tree) or the unit is not on it.
[[nodiscard]] std::vector<SliceStep> slices_above(std::string_view path, std::string_view unit);

}  // namespace apusched::core
