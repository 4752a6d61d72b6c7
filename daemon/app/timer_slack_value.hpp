// SPDX-License-Identifier: MIT
#pragma once

#include "app/thread_value.hpp"

namespace apusched::app {

/// How late a thread's timers may fire. A thread that is cloned takes its creator's slack for its
/// own and for its default (linux kernel/fork.c, copy_process); only the former can be put back
/// from outside, so that one born meanwhile which asks for its default by prctl(2) has ours.
class TimerSlackValue final : public ThreadValue {
 public:
  explicit TimerSlackValue(ports::Scheduler& scheduler) : scheduler_(scheduler) {}
  core::LeverKind kind() const override { return core::LeverKind::timer_slack; }
  core::Result<core::LeverValue> of(const ports::ThreadFacts& thread) override {
    return read(thread.key.tid);
  }
  core::Result<core::LeverValue> read(core::Tid tid) override {
    const auto slack = scheduler_.thread_timer_slack(tid);
    if (!slack) return tl::unexpected(slack.error());
    return core::LeverValue(*slack);
  }
  core::Result<void> write(core::Tid tid, const core::LeverValue& value) override {
    return scheduler_.set_thread_timer_slack(tid, std::get<core::TimerSlack>(value));
  }
  /// A real-time thread has none.
  bool is_reserved(const core::LeverValue& value) const override {
    return std::get<core::TimerSlack>(value).value() == 0;
  }

 private:
  ports::Scheduler& scheduler_;
};

}  // namespace apusched::app
