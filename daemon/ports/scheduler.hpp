// SPDX-License-Identifier: MIT
#pragma once

#include "core/result.hpp"
#include "core/types.hpp"

namespace apusched::ports {

/// The kernel's CPU scheduling knobs. All calls are cheap (measured 0.2-1.3 us) and synchronous.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  /// setpriority(2) on Linux acts on one thread.
  [[nodiscard]] virtual core::Result<core::Nice> thread_nice(core::Tid tid) = 0;
  [[nodiscard]] virtual core::Result<void> set_thread_nice(core::Tid tid, core::Nice nice) = 0;
  [[nodiscard]] virtual core::Result<core::SchedulingPolicy> thread_policy(core::Tid tid) = 0;
  /// Never to `other`. Nice stays, and so does SCHED_RESET_ON_FORK.
  [[nodiscard]] virtual core::Result<void> set_thread_policy(core::Tid tid,
                                                             core::SchedulingPolicy policy) = 0;
  [[nodiscard]] virtual core::Result<core::IoPriority> thread_io(core::Tid tid) = 0;
  [[nodiscard]] virtual core::Result<void> set_thread_io(core::Tid tid,
                                                         core::IoPriority priority) = 0;
  /// 0: a real-time thread, which has none.
  [[nodiscard]] virtual core::Result<core::TimerSlack> thread_timer_slack(core::Tid tid) = 0;
  [[nodiscard]] virtual core::Result<void> set_thread_timer_slack(core::Tid tid,
                                                                  core::TimerSlack slack) = 0;
  [[nodiscard]] virtual core::Result<core::Nice> autogroup_nice(core::Pid member) = 0;
  /// Without CAP_SYS_ADMIN the kernel rate-limits this write (EAGAIN): `timed_out`, try later.
  [[nodiscard]] virtual core::Result<void> set_autogroup_nice(core::Pid member,
                                                              core::Nice nice) = 0;
};

}  // namespace apusched::ports
