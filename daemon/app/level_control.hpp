// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>

#include "app/gpu_watch.hpp"
#include "app/power_saving.hpp"
#include "app/steering.hpp"
#include "core/config.hpp"
#include "core/level_trial.hpp"
#include "ports/event_loop.hpp"

namespace apusched::app {

/// Decides on each GPU whether the level that profiles ask for may be held now. Owner of the
/// trials. Event-loop thread; has no timer: it is asked with each scan.
class LevelControl {
 public:
  /// All borrowed.
  LevelControl(GpuWatch& gpus, PowerSaving& power, ControlBook& book, ports::EventLoop& loop,
               const core::Config& config);

  /// Those that registrations want a high level on, for whom, and whether one of these works.
  struct Wish {
    core::Pid pid;
    bool working = false;
  };
  /// True where an answer of `why_not` has changed.
  [[nodiscard]] bool update(const std::map<core::PciAddress, Wish>& wishes);
  /// A sentence; empty: hold it.
  [[nodiscard]] std::string why_not(const core::PciAddress& gpu) const;

 private:
  struct Gpu {
    core::LevelTrial trial;
    std::string why;
  };

  GpuWatch& gpus_;
  PowerSaving& power_;
  ControlBook& book_;
  ports::EventLoop& loop_;
  const core::Config& config_;
  std::map<core::PciAddress, Gpu> trials_;
};

}  // namespace apusched::app
