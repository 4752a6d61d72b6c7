// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>

#include "app/shared_lever.hpp"
#include "ports/gpu.hpp"
#include "ports/processes.hpp"
#include "ports/scheduler.hpp"
#include "ports/units.hpp"

namespace apusched::app {

/// Autogroup nice. An autogroup outlives the process through which it was set, so every access
/// goes through any live member of the session.
class AutogroupBackend final : public LeverBackend {
 public:
  AutogroupBackend(ports::ProcessSource& processes, ports::Scheduler& scheduler)
      : processes_(processes), scheduler_(scheduler) {}
  /// A process known to be in the group, tried before all of /proc is searched.
  void hint(const std::string& group, core::Pid member) { hints_.insert_or_assign(group, member); }

  void read(const std::string& id, ReadCallback done) override;
  void write(const std::string& id, const core::LeverValue& value, const core::LeverValue& expected,
             DoneCallback done) override;
  void clean_up(const std::string& id) override { hints_.erase(id); }

 private:
  [[nodiscard]] core::Result<core::Pid> member_of(const std::string& group);
  [[nodiscard]] core::Result<void> write_through(core::Pid member, core::Nice value,
                                                 core::Nice expected);
  ports::ProcessSource& processes_;
  ports::Scheduler& scheduler_;
  std::map<std::string, core::Pid> hints_;
};

/// CPUWeight or IOWeight of a unit, through systemd.
class WeightBackend final : public LeverBackend {
 public:
  WeightBackend(core::LeverKind kind, ports::Units& units, ports::Report& report)
      : kind_(kind), units_(units), report_(report) {}

  void read(const std::string& id, ReadCallback done) override;
  void write(const std::string& id, const core::LeverValue& value, const core::LeverValue& expected,
             DoneCallback done) override;
  [[nodiscard]] bool leaves_trace(const std::string& id) override {
    return !units_.has_drop_in(id, kind_);
  }
  void clean_up(const std::string& id) override;

 private:
  core::LeverKind kind_;
  ports::Units& units_;
  ports::Report& report_;
};

/// power_dpm_force_performance_level of a GPU, through the level writer.
class LevelBackend final : public LeverBackend {
 public:
  explicit LevelBackend(ports::LevelWriter& writer) : writer_(writer) {}

  void read(const std::string& id, ReadCallback done) override;
  void write(const std::string& id, const core::LeverValue& value, const core::LeverValue& expected,
             DoneCallback done) override;
  [[nodiscard]] std::string refuse(const core::LeverValue& found) const override;
  [[nodiscard]] bool is_temporary(const core::Error& error) const override;

 private:
  ports::LevelWriter& writer_;
};

}  // namespace apusched::app
