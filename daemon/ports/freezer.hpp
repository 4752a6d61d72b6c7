// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/hold_back.hpp"
#include "core/result.hpp"
#include "core/types.hpp"

namespace apusched::ports {

/// Stops units for a part of the time. A unit is named by its path in the cgroup v2 tree. What is
/// asked for ends by itself soon after this object, or the daemon, is gone.
class Freezer {
 public:
  virtual ~Freezer() = default;
  using DoneCallback = std::function<void(core::Result<void>)>;
  /// Called with a unit that somebody else freezes or thaws: it was given up.
  using ForeignCallback = std::function<void(const std::string& unit, core::FrozenShare found)>;

  /// In the unit and in the groups below it. `limit_reached`: more than are looked at.
  [[nodiscard]] virtual core::Result<std::vector<core::UnitProcess>> processes(
      const std::string& unit) = 0;
  /// 100 where somebody has stopped it, else 0. Only for units for which nothing is asked.
  [[nodiscard]] virtual core::Result<core::FrozenShare> read(const std::string& unit) = 0;
  /// The answer comes later, and never after the end of this object.
  virtual void set(const std::string& unit, core::FrozenShare share, DoneCallback done) = 0;
  /// A sentence where nothing can be stopped now; empty: it can.
  [[nodiscard]] virtual std::string why_not() const = 0;
  virtual void on_foreign(ForeignCallback callback) = 0;
};

}  // namespace apusched::ports
