// SPDX-License-Identifier: MIT
#pragma once

#include "ports/units.hpp"

namespace apusched::platform {

/// Units where there is no bus to reach systemd over: every question is answered at once, with
/// why. Used by `apuschedd --restore`, which must not need the bus for the rest of its work.
class NoUnits final : public ports::Units {
 public:
  void find(core::Pid pid, FactsCallback done) override { done(refusal(core::to_string(pid))); }
  void read(const std::string& unit, FactsCallback done) override { done(refusal(unit)); }
  void set_weight(const std::string& unit, core::LeverKind, core::Weight,
                  DoneCallback done) override {
    done(refusal(unit));
  }
  bool has_drop_in(const std::string&, core::LeverKind) override { return true; }
  core::Result<void> remove_drop_in(const std::string& unit, core::LeverKind) override {
    return refusal(unit);
  }

 private:
  static tl::unexpected<core::Error> refusal(const std::string& target) {
    return core::fail(core::ErrorCode::failed, "reach systemd for", target,
                      "the bus is not reachable");
  }
};

}  // namespace apusched::platform
