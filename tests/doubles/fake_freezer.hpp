// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ports/freezer.hpp"

namespace apusched::doubles {

/// Units of a test's own, as somebody else sees them.
class FakeFreezer final : public ports::Freezer {
 public:
  struct Unit {
    std::vector<core::UnitProcess> processes;
    std::uint32_t percent = 0;  ///< in force
  };

  core::Result<std::vector<core::UnitProcess>> processes(const std::string& unit) override {
    ++looks;
    const auto found = units.find(unit);
    if (found == units.end()) return core::fail(core::ErrorCode::gone, "list", unit, "no group");
    return found->second.processes;
  }
  core::Result<core::FrozenShare> read(const std::string& unit) override {
    const auto found = units.find(unit);
    if (found == units.end()) return core::fail(core::ErrorCode::gone, "read", unit, "no group");
    return *core::FrozenShare::make(found->second.percent);
  }
  void set(const std::string& unit, core::FrozenShare share, DoneCallback done) override {
    const auto found = units.find(unit);
    if (found == units.end())
      return done(core::fail(core::ErrorCode::gone, "freeze", unit, "no group"));
    if (failure) return done(tl::unexpected(*failure));
    log.push_back(unit + " " + core::to_string(share));
    found->second.percent = share.value();
    done({});
  }
  [[nodiscard]] std::string why_not() const override { return broken; }
  void on_foreign(ForeignCallback callback) override { foreign = std::move(callback); }

  std::map<std::string, Unit> units;
  std::vector<std::string> log;
  std::optional<core::Error> failure;
  std::string broken;
  int looks = 0;
  ForeignCallback foreign;
};

}  // namespace apusched::doubles
