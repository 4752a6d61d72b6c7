// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "app/control_loop.hpp"
#include "app/registration.hpp"
#include "app/shared_lever.hpp"
#include "core/control.hpp"
#include "core/hold_back.hpp"
#include "ports/freezer.hpp"
#include "ports/processes.hpp"

namespace apusched::app {

/// The freezer as a lever: a unit's share, by its path in the cgroup v2 tree.
class FreezerBackend final : public LeverBackend {
 public:
  explicit FreezerBackend(ports::Freezer* freezer) : freezer_(freezer) {}
  void read(const std::string& id, ReadCallback done) override;
  void write(const std::string& id, const core::LeverValue& value, const core::LeverValue& expected,
             DoneCallback done) override;
  [[nodiscard]] std::string refuse(const core::LeverValue& found) const override;

 private:
  ports::Freezer* freezer_;
};

/// Which background units are stopped for a part of the time, and for whom. Owner of these wishes;
/// the lever keeps the values. Event-loop thread.
class HoldBack {
 public:
  /// `freezer` null: off. All borrowed.
  HoldBack(ports::Freezer* freezer, SharedLever& lever, ports::ProcessSource& processes,
           const core::Config& config, const Registrations& registrations);

  /// The ladder's last rung for this registration; none where the configuration has it off. Whether
  /// it can act is looked up where it may be tried (`needed`) or is in force.
  [[nodiscard]] std::vector<core::Rung> rungs(core::RegistrationId id, bool needed);
  /// One of the loops of a registration wants it, as the rung that it has could act, or no longer.
  void want(core::RegistrationId id, core::Latency loop, bool wanted);
  /// Units are looked at again: a stranger in one, or a process that was released, ends its being
  /// stopped at once. Costs nothing where nothing is stopped.
  void follow();
  void end(core::RegistrationId id);
  /// CPU time that units stopped for its sake would have used more since the last call: a rival
  /// that is stopped is one still. What they use while they run says what they want.
  [[nodiscard]] std::chrono::nanoseconds kept_from_others(core::RegistrationId id);
  [[nodiscard]] bool holds(const std::string& unit_path) const { return held_.contains(unit_path); }

 private:
  /// Every background unit, and why it cannot be stopped; empty: it can.
  using Units = std::map<std::string, std::string>;
  [[nodiscard]] Units look() const;
  [[nodiscard]] std::string why_not(const std::string& unit,
                                    const std::set<core::Pid>& background) const;
  [[nodiscard]] std::string why_none_acts(const Units& units, bool& being_written) const;
  void follow(const Units& units);
  /// `units`: none where nothing is wanted for it any more.
  void update(core::RegistrationId id, const Units& units);

  ports::Freezer* freezer_;
  SharedLever& lever_;
  ports::ProcessSource& processes_;
  const core::Config& config_;
  const Registrations& registrations_;
  std::map<core::RegistrationId, std::set<core::Latency>> wanted_;
  std::map<std::string, std::set<core::RegistrationId>> held_;  ///< for whom, by unit
  /// CPU time of the processes in units stopped for a registration, when it last asked.
  std::map<core::RegistrationId, std::map<core::Pid, std::uint64_t>> used_;
};

}  // namespace apusched::app
