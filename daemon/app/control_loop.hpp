// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/registration.hpp"
#include "app/views.hpp"
#include "core/config.hpp"
#include "core/control.hpp"
#include "ports/control_log.hpp"
#include "ports/event_loop.hpp"
#include "ports/meters.hpp"
#include "ports/report.hpp"

namespace apusched::app {

using Registrations = std::map<core::RegistrationId, Registration>;

/// Drives a core::Controller for each registration whose profile has a target: observes how long
/// its busiest threads wait for a CPU, and asks for stronger group levers where that is too long.
/// Owner of the meters, controllers and history. Event-loop thread. Without such a registration
/// there is no timer.
class ControlLoop {
 public:
  /// What must be in force now, by lever; called only when that changes.
  using Apply = std::function<void(core::RegistrationId, const std::vector<std::string>& engaged)>;
  using RungsOf = std::function<std::vector<core::Rung>(core::RegistrationId)>;

  /// `meters` null: control is off. `log` may be null. All borrowed.
  ControlLoop(ports::Meters* meters, ports::ControlLog* log, ports::EventLoop& loop,
              ports::Report& report, const core::Config& config);
  void on_apply(Apply apply) { apply_ = std::move(apply); }
  void on_rungs(RungsOf rungs) { rungs_of_ = std::move(rungs); }
  void on_state(std::function<void(core::RegistrationId)> changed) {
    state_changed_ = std::move(changed);
  }

  /// A registration is there, or has done something since: which of its threads matter.
  void begin(const Registration& registration);
  void end(core::RegistrationId id);
  /// True where the last observation was over the target.
  [[nodiscard]] bool misses(core::RegistrationId id) const;
  [[nodiscard]] std::optional<ControlView> view(core::RegistrationId id) const;
  /// The newest last.
  [[nodiscard]] std::vector<HistoryLine> history(std::size_t count) const;

 private:
  struct Thread {
    std::unique_ptr<ports::ThreadMeter> meter;
    std::optional<ports::ThreadTimes> last;
  };
  struct Target {
    explicit Target(const core::ControlSettings& settings) : controller(settings) {}
    core::Controller controller;
    core::Pid pid = core::Pid::of<1>();
    std::map<core::Tid, Thread> threads;
    std::map<core::Tid, std::chrono::nanoseconds> ran;  ///< at the last scan
    /// CPU time of each member, once it was read.
    std::map<core::Pid, std::optional<std::chrono::nanoseconds>> used;
    std::vector<std::string> engaged;
    core::ControlState state = core::ControlState::observing;
    std::string why;                             ///< what was said when it entered its state
    std::optional<core::Moment> stepped;         ///< when last
    std::optional<ports::MachineTimes> machine;  ///< as it was then
    double observation = 0;
  };
  struct Sample {
    std::optional<double> wait_us;
    bool worked = false;
  };

  [[nodiscard]] core::ControlSettings settings_of(const core::Profile& profile) const;
  void choose_threads(Target& target, const Registration& registration);
  void arm();
  void tick();
  [[nodiscard]] bool due(const Target& target, core::Moment now) const;
  void step(core::RegistrationId id, Target& target, core::Moment now,
            const ports::MachineTimes& machine);
  [[nodiscard]] static Sample sample(Target& target);
  [[nodiscard]] std::chrono::nanoseconds own_time(Target& target);
  void tell(core::RegistrationId id, Target& target, const core::ControlOutput& output);
  [[nodiscard]] std::size_t threads_each() const;

  ports::Meters* meters_;
  ports::ControlLog* log_;
  ports::EventLoop& loop_;
  ports::Report& report_;
  const core::Config& config_;
  Apply apply_;
  RungsOf rungs_of_;
  std::function<void(core::RegistrationId)> state_changed_;
  std::map<core::RegistrationId, Target> targets_;
  std::unique_ptr<ports::Subscription> timer_;
  std::deque<HistoryLine> history_;
};

}  // namespace apusched::app
