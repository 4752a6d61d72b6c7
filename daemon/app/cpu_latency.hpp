// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "app/power_saving.hpp"
#include "app/refusal.hpp"
#include "core/config.hpp"
#include "core/lever.hpp"
#include "ports/event_loop.hpp"
#include "ports/idle_latency.hpp"

namespace apusched::app {

/// The one limit on how long idle CPUs take to wake up, for all who want one: the strictest counts.
/// In no ledger: the kernel takes the limit back when the daemon ends, however that comes.
/// Owner of the wishes. Event-loop thread.
class CpuLatency {
 public:
  /// `port` null: it cannot act. All borrowed.
  CpuLatency(ports::IdleLatency* port, PowerSaving& power, ports::EventLoop& loop,
             const core::Config& config, bool dry_run);

  /// Why such a limit cannot act now; empty: it can.
  [[nodiscard]] std::string why_not(core::IdleLimit limit) { return obstacle(limit).why; }
  void hold(core::RegistrationId holder, core::IdleLimit limit);
  void release(core::RegistrationId holder);
  /// Of somebody whose limit it is or would be.
  [[nodiscard]] core::LeverStatus status(core::RegistrationId holder, core::IdleLimit limit);

 private:
  struct Obstacle {
    core::Outcome outcome;
    std::string why;  ///< empty: there is none
  };
  [[nodiscard]] Obstacle obstacle(core::IdleLimit limit);
  [[nodiscard]] std::string look(core::IdleLimit limit);
  void follow();

  ports::IdleLatency* port_;
  PowerSaving& power_;
  ports::EventLoop& loop_;
  const core::Config& config_;
  bool dry_run_;
  std::map<core::RegistrationId, core::IdleLimit> wishes_;
  std::optional<core::IdleLimit> in_force_;
  Refusal refused_;
  std::optional<core::Result<ports::IdleState>> deepest_;
  std::chrono::steady_clock::time_point looked_at_{};
};

}  // namespace apusched::app
