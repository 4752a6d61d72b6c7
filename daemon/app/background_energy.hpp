// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/control_loop.hpp"
#include "app/registration.hpp"
#include "app/shared_lever.hpp"
#include "core/config.hpp"
#include "core/control.hpp"
#include "core/energy.hpp"
#include "ports/cpu_energy.hpp"
#include "ports/event_loop.hpp"
#include "ports/processes.hpp"

namespace apusched::app {

/// A policy's energy performance preference as a lever; its id is the policy's name.
class EnergyBackend final : public LeverBackend {
 public:
  /// `port` null: there are none. `saving` is what will be asked for.
  EnergyBackend(ports::CpuEnergy* port, core::EnergySaving saving) : port_(port), saving_(saving) {}
  void read(const std::string& id, ReadCallback done) override;
  void write(const std::string& id, const core::LeverValue& value, const core::LeverValue& expected,
             DoneCallback done) override;
  [[nodiscard]] std::string refuse(const core::LeverValue& found) const override;

 private:
  [[nodiscard]] core::Result<void> write(const std::string& id, core::EnergyPreference value,
                                         core::EnergyPreference expected);
  ports::CpuEnergy* port_;
  core::EnergySaving saving_;
};

/// Which CPUs save energy for whom: those on which, of all registered processes, only background
/// ones may run. What runs there without being registered is slower too. Owner of these wishes; the
/// lever keeps the values. Event-loop thread.
class BackgroundEnergy {
 public:
  /// `port` null: off. All borrowed.
  BackgroundEnergy(ports::CpuEnergy* port, SharedLever& lever, ports::ProcessSource& processes,
                   ports::EventLoop& loop, const core::Config& config,
                   const Registrations& registrations, bool dry_run);

  /// The rung for this registration; none where the configuration has it off. Whether it can act is
  /// looked up where it may be tried (`needed`) or is in force, at most once a scan interval.
  [[nodiscard]] std::vector<core::Rung> rungs(core::RegistrationId id, bool needed);
  void want(core::RegistrationId id, bool wanted);
  /// At each scan and registration: a CPU on which another process may run now is restored at once.
  /// Costs nothing where nothing is held.
  void follow();
  void end(core::RegistrationId id);
  /// Nothing where the configuration has it off.
  [[nodiscard]] std::optional<core::LeverStatus> status(core::RegistrationId id) const;

 private:
  /// A policy that somebody else sets, or that does not let itself be set.
  struct LeftAlone {
    core::Outcome outcome = core::Outcome::contended;
    std::string why;
    std::chrono::steady_clock::time_point until;
  };

  void refresh();
  void look();
  [[nodiscard]] core::CpuUse use() const;
  void note_work(std::chrono::steady_clock::time_point now);
  void notice(const std::vector<core::EnergyPolicy>& policies,
              std::chrono::steady_clock::time_point asked);
  [[nodiscard]] std::string why_not(core::RegistrationId id) const;
  void apply();
  [[nodiscard]] core::Outcome outcome_of(const std::string& why) const;

  ports::CpuEnergy* port_;
  SharedLever& lever_;
  ports::ProcessSource& processes_;
  ports::EventLoop& loop_;
  const core::Config& config_;
  const Registrations& registrations_;
  std::optional<core::EnergyPreference> wish_;
  bool dry_run_;
  std::set<core::RegistrationId> wanted_;
  std::set<core::RegistrationId> asked_;  ///< that could have used it since they are registered
  std::map<std::string, std::set<core::RegistrationId>> held_;  ///< for whom, by policy
  std::map<std::string, LeftAlone> left_alone_;                 ///< by policy
  /// Of background registrations: when they were last seen to work enough to be worth it.
  std::map<core::RegistrationId, std::chrono::steady_clock::time_point> worked_;
  std::optional<core::Lowerable> seen_;  ///< at the last look
  std::chrono::steady_clock::time_point seen_at_{};
};

}  // namespace apusched::app
