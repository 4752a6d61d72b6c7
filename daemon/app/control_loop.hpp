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
#include "app/steering.hpp"
#include "core/config.hpp"
#include "core/control.hpp"
#include "ports/event_loop.hpp"
#include "ports/meters.hpp"

namespace apusched::app {

using Registrations = std::map<core::RegistrationId, Registration>;

/// Others are held back for its sake; for that of a background process none is.
[[nodiscard]] inline bool may_ask_others(const Registrations& registrations,
                                         core::RegistrationId id) {
  const auto self = registrations.find(id);
  return self != registrations.end() &&
         self->second.profile.work_class != core::WorkClass::background;
}

/// Drives a core::Controller for each registration whose profile has a target: observes how long
/// its busiest threads wait for a CPU, and asks for stronger group levers where that is too long.
/// Owner of the meters and of its steerings. Event-loop thread. Without such a registration
/// there is no timer.
class ControlLoop {
 public:
  /// What must be in force now, by lever; called only when that changes.
  using Apply = std::function<void(core::RegistrationId, const std::vector<std::string>& engaged)>;
  using RungsOf = std::function<std::vector<core::Rung>(core::RegistrationId)>;

  /// `meters` null: control is off. All borrowed.
  ControlLoop(ports::Meters* meters, ControlBook& book, ports::EventLoop& loop,
              const core::Config& config);
  void on_apply(Apply apply) { apply_ = std::move(apply); }
  void on_rungs(RungsOf rungs) { rungs_of_ = std::move(rungs); }
  /// CPU time that others were kept from since the last call (app::HoldBack): they are rivals
  /// still.
  using KeptBack = std::function<std::chrono::nanoseconds(core::RegistrationId)>;
  void on_kept_back(KeptBack kept) { kept_back_ = std::move(kept); }

  /// A registration is there, or has done something since: which of its threads matter.
  void begin(const Registration& registration);
  void end(core::RegistrationId id);
  /// True where the last observation was over the target.
  [[nodiscard]] bool misses(core::RegistrationId id) const;
  [[nodiscard]] std::optional<ControlView> view(core::RegistrationId id) const;

 private:
  struct Thread {
    std::unique_ptr<ports::ThreadMeter> meter;
    std::optional<ports::ThreadTimes> last;
  };
  struct Target {
    explicit Target(Steering begun) : steering(std::move(begun)) {}
    Steering steering;
    std::map<core::Tid, Thread> threads;
    std::map<core::Tid, std::chrono::nanoseconds> ran;  ///< at the last scan
    /// CPU time of each member, once it was read.
    std::map<core::Pid, std::optional<std::chrono::nanoseconds>> used;
    std::optional<core::Moment> stepped = {};         ///< when last
    std::optional<ports::MachineTimes> machine = {};  ///< as it was then, where it was looked at
    double limit_us = 0;                              ///< the target
    bool missed = false;                              ///< by the last observation
    std::deque<double> wanted = {};  ///< CPUs that others run on or wait for, in the last steps
  };
  /// Since the last step.
  struct Observed {
    core::Moment passed{0};
    std::chrono::nanoseconds own{0};  ///< CPU time of all members
    std::optional<double> wait_us;
    /// All sampled threads, each at most what it can have waited in that time: a wait is booked
    /// when it ends.
    std::chrono::nanoseconds waited{0};
    bool worked = false;
  };

  [[nodiscard]] core::ControlSettings settings_of(const core::Profile& profile) const;
  void choose_threads(Target& target, const Registration& registration);
  void arm();
  void tick();
  [[nodiscard]] bool due(const Target& target, core::Moment now) const;
  /// `machine` is read by the first in a tick that needs it.
  void step(core::RegistrationId id, Target& target, core::Moment now,
            std::optional<ports::MachineTimes>& machine);
  [[nodiscard]] std::optional<ports::MachineTimes> measured();
  static void sample(Target& target, Observed& seen);
  [[nodiscard]] double rival_of(core::RegistrationId id, Target& target, const Observed& seen,
                                const ports::MachineTimes& machine);
  [[nodiscard]] std::chrono::nanoseconds own_time(Target& target);
  [[nodiscard]] std::size_t threads_each() const;

  ports::Meters* meters_;
  ControlBook& book_;
  ports::EventLoop& loop_;
  const core::Config& config_;
  Apply apply_;
  RungsOf rungs_of_;
  KeptBack kept_back_;
  std::map<core::RegistrationId, Target> targets_;
  std::unique_ptr<ports::Subscription> timer_;
};

}  // namespace apusched::app
