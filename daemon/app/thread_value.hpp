// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "core/lever.hpp"
#include "ports/processes.hpp"
#include "ports/scheduler.hpp"

namespace apusched::app {

/// One value that every thread has for itself, and how it is read and written. Stateless.
class ThreadValue {
 public:
  virtual ~ThreadValue() = default;
  [[nodiscard]] virtual core::LeverKind kind() const = 0;
  /// What the thread had when it was listed; `gone` where that has to be read and it has ended.
  [[nodiscard]] virtual core::Result<core::LeverValue> of(const ports::ThreadFacts& thread) = 0;
  [[nodiscard]] virtual core::Result<core::LeverValue> read(core::Tid tid) = 0;
  [[nodiscard]] virtual core::Result<void> write(core::Tid tid, const core::LeverValue& value) = 0;
  /// Somebody's choice that is never overridden, whatever the profile says.
  [[nodiscard]] virtual bool is_reserved(const core::LeverValue& /*value*/) const { return false; }
  /// True where the kernel may have made this of `wish` when a thread with it was cloned.
  [[nodiscard]] virtual bool is_reset(const core::LeverValue& /*value*/,
                                      const core::LeverValue& /*wish*/) const {
    return false;
  }
};

/// setpriority acts on one thread.
class NiceValue final : public ThreadValue {
 public:
  explicit NiceValue(ports::Scheduler& scheduler) : scheduler_(scheduler) {}
  core::LeverKind kind() const override { return core::LeverKind::nice; }
  core::Result<core::LeverValue> of(const ports::ThreadFacts& thread) override {
    return core::LeverValue(thread.nice);
  }
  core::Result<core::LeverValue> read(core::Tid tid) override {
    const auto nice = scheduler_.thread_nice(tid);
    if (!nice) return tl::unexpected(nice.error());
    return core::LeverValue(*nice);
  }
  core::Result<void> write(core::Tid tid, const core::LeverValue& value) override {
    return scheduler_.set_thread_nice(tid, std::get<core::Nice>(value));
  }
  /// SCHED_RESET_ON_FORK makes a negative nice 0.
  bool is_reset(const core::LeverValue& value, const core::LeverValue& wish) const override {
    return std::get<core::Nice>(value).value() == 0 && std::get<core::Nice>(wish).value() < 0;
  }

 private:
  ports::Scheduler& scheduler_;
};

/// SCHED_RESET_ON_FORK leaves these policies alone.
class PolicyValue final : public ThreadValue {
 public:
  explicit PolicyValue(ports::Scheduler& scheduler) : scheduler_(scheduler) {}
  core::LeverKind kind() const override { return core::LeverKind::scheduling; }
  core::Result<core::LeverValue> of(const ports::ThreadFacts& thread) override {
    return read(thread.key.tid);
  }
  core::Result<core::LeverValue> read(core::Tid tid) override {
    const auto policy = scheduler_.thread_policy(tid);
    if (!policy) return tl::unexpected(policy.error());
    return core::LeverValue(*policy);
  }
  core::Result<void> write(core::Tid tid, const core::LeverValue& value) override {
    return scheduler_.set_thread_policy(tid, std::get<core::SchedulingPolicy>(value));
  }
  bool is_reserved(const core::LeverValue& value) const override {
    return value == core::LeverValue(core::SchedulingPolicy::other);
  }

 private:
  ports::Scheduler& scheduler_;
};

class IoValue final : public ThreadValue {
 public:
  explicit IoValue(ports::Scheduler& scheduler) : scheduler_(scheduler) {}
  core::LeverKind kind() const override { return core::LeverKind::io_class; }
  core::Result<core::LeverValue> of(const ports::ThreadFacts& thread) override {
    return read(thread.key.tid);
  }
  core::Result<core::LeverValue> read(core::Tid tid) override {
    const auto priority = scheduler_.thread_io(tid);
    if (!priority) return tl::unexpected(priority.error());
    return core::LeverValue(*priority);
  }
  core::Result<void> write(core::Tid tid, const core::LeverValue& value) override {
    return scheduler_.set_thread_io(tid, std::get<core::IoPriority>(value));
  }

 private:
  ports::Scheduler& scheduler_;
};

}  // namespace apusched::app
