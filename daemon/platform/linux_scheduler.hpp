// SPDX-License-Identifier: MIT
#pragma once

#include "ports/scheduler.hpp"

namespace apusched::platform {

/// Scheduler by setpriority(2), sched_setscheduler(2), ioprio_set(2), /proc/PID/autogroup and
/// /proc/TID/timerslack_ns.
/// Stateless.
class LinuxScheduler final : public ports::Scheduler {
 public:
  core::Result<core::Nice> thread_nice(core::Tid tid) override;
  core::Result<void> set_thread_nice(core::Tid tid, core::Nice nice) override;
  core::Result<core::SchedulingPolicy> thread_policy(core::Tid tid) override;
  core::Result<void> set_thread_policy(core::Tid tid, core::SchedulingPolicy policy) override;
  core::Result<core::IoPriority> thread_io(core::Tid tid) override;
  core::Result<void> set_thread_io(core::Tid tid, core::IoPriority priority) override;
  core::Result<core::TimerSlack> thread_timer_slack(core::Tid tid) override;
  core::Result<void> set_thread_timer_slack(core::Tid tid, core::TimerSlack slack) override;
  core::Result<core::Nice> autogroup_nice(core::Pid member) override;
  core::Result<void> set_autogroup_nice(core::Pid member, core::Nice nice) override;
};

}  // namespace apusched::platform
