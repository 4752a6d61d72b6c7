// SPDX-License-Identifier: MIT
#include "core/placement.hpp"

#include <algorithm>

namespace apusched::core {
namespace {

LeverReach nice_reach(const Placement& at) {
  if (at.cpu_group != "/")
    return {true, "acts against threads of the same cgroup (" + at.cpu_group + ") only"};
  if (at.autogroup_enabled && at.autogroup)
    return {true, "acts against threads of the same session (" + *at.autogroup + ") only"};
  return {true, "acts against every thread in the root group"};
}

LeverReach autogroup_reach(const Placement& at) {
  if (!at.autogroup_enabled)
    return {false, "autogroups are off (kernel.sched_autogroup_enabled=0)"};
  // /proc/PID/autogroup still reads fine then, but the scheduler does not look at it.
  if (at.cpu_group != "/")
    return {false, "the cpu cgroup " + at.cpu_group + " overrides the session's autogroup"};
  if (!at.autogroup) return {false, "the process has no autogroup"};
  return {true, "acts against other sessions"};
}

LeverReach weight_reach(LeverKind kind, const Placement& at) {
  if (kind == LeverKind::cpu_weight && at.sched_ext_active)
    return {true, "acts against sibling units, but a sched_ext scheduler may ignore it"};
  return {true, "acts against sibling units"};
}

}  // namespace

LeverReach reach_of(LeverKind kind, const Placement& placement) {
  switch (kind) {
    case LeverKind::nice:
    case LeverKind::scheduling:
      return nice_reach(placement);
    case LeverKind::io_class:
      return {true, "acts on disks whose I/O scheduler is bfq or mq-deadline"};
    case LeverKind::timer_slack:
      return {true, "acts on waits with a time limit"};
    case LeverKind::autogroup:
      return autogroup_reach(placement);
    case LeverKind::cpu_weight:
    case LeverKind::io_weight:
      return weight_reach(kind, placement);
    case LeverKind::performance_level:
      return {true, "acts on everything on the die"};
    default:
      break;  // settings of the agent: they do not depend on where the process stands
  }
  return {};
}

std::vector<SliceStep> slices_above(std::string_view path, std::string_view unit) {
  std::vector<SliceStep> steps;
  std::string above;
  while (path.starts_with('/')) {
    path.remove_prefix(1);
    const std::string name(path.substr(0, path.find('/')));
    path.remove_prefix(name.size());
    if (!steps.empty()) steps.back().child = name;
    if (name == unit) {
      std::ranges::reverse(steps);
      return steps;
    }
    if (!name.ends_with(".slice")) return {};
    above += "/" + name;
    steps.push_back({name, above, {}});
  }
  return {};
}

}  // namespace apusched::core
