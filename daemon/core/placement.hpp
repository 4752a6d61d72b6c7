// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

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

}  // namespace apusched::core
