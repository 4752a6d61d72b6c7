// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "app/agent_watch.hpp"
#include "app/registration.hpp"
#include "app/steering.hpp"
#include "core/baseline.hpp"
#include "core/config.hpp"
#include "core/gpu_pressure.hpp"
#include "ports/event_loop.hpp"

namespace apusched::app {

/// Drives a core::Controller for each registration whose profile has a dispatch target and whose
/// process has an agent: observes how long its packets wait, and asks others on the same GPU to
/// give way where that is longer than it need be. Owner of its steerings, of their yardsticks and
/// of the pressure on each GPU. Event-loop thread. Without such a registration there is no timer.
class GpuControl {
 public:
  /// What is asked of the others has changed: AgentWatch has it, an update is due.
  using Pressed = std::function<void()>;
  /// What can be done for the process itself, beside what others on its GPU give way by.
  using RungsOf = std::function<std::vector<core::Rung>(core::RegistrationId, bool misses)>;
  /// What must be in force for it now; called only when that changes.
  using Apply = std::function<void(core::RegistrationId, const std::vector<std::string>& engaged)>;

  /// All borrowed; `registrations` is read in ticks only.
  GpuControl(AgentWatch& agents, ControlBook& book, ports::EventLoop& loop,
             const core::Config& config, const Registrations& registrations);
  void on_pressed(Pressed pressed) { pressed_ = std::move(pressed); }
  void on_rungs(RungsOf rungs) { rungs_of_ = std::move(rungs); }
  void on_apply(Apply apply) { apply_ = std::move(apply); }
  void set_gpus(const std::vector<ports::GpuFacts>& gpus);

  /// Once per scan and after each registration.
  void follow();
  void end(core::RegistrationId id);
  [[nodiscard]] std::optional<ControlView> view(core::RegistrationId id) const;

 private:
  struct Target {
    Steering steering;
    core::Baseline baseline;
    bool explored = false;  ///< everything was tried at least once
  };
  using Parties = std::map<core::PciAddress, std::vector<core::GpuParty>>;

  void arm();
  void tick();
  /// True where it asks for something else than before.
  [[nodiscard]] bool step(core::RegistrationId id, Target& target, core::Moment now,
                          const Parties& parties);
  void press();
  [[nodiscard]] std::vector<core::GpuParty> without_agent(const Registration& self) const;

  AgentWatch& agents_;
  ControlBook& book_;
  ports::EventLoop& loop_;
  const core::Config& config_;
  const Registrations& registrations_;
  Pressed pressed_;
  RungsOf rungs_of_;
  Apply apply_;
  std::map<core::PciAddress, bool> priority_acts_;
  std::map<core::RegistrationId, Target> targets_;
  std::unique_ptr<ports::Subscription> timer_;
};

}  // namespace apusched::app
