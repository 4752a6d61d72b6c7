// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace apusched::freezer {

using Moment = std::chrono::milliseconds;  ///< on any monotonic clock

/// Not a multiple of the control loop's tick, which would always see the same part of it.
inline constexpr Moment kPeriod{80};
/// Without a word from the daemon for so long everything runs again.
inline constexpr Moment kLease{1000};
/// How often the daemon repeats itself.
inline constexpr Moment kRenewal{250};

/// Which units are to be stopped and let run when. Pure; its owner does what it says.
class DutyCycles {
 public:
  struct Step {
    std::string path;
    bool freeze = false;
    bool operator==(const Step&) const = default;
  };

  /// Begins, changes or renews; a share of 0 ends it. A unit that is new begins by running.
  void set(const std::string& path, core::FrozenShare share, Moment now);
  /// What is due, in the order of the paths. Units whose lease has ended, or that were ended while
  /// they were stopped, are let run and forgotten.
  [[nodiscard]] std::vector<Step> due(Moment now);
  /// When `due` has something to say next; nothing where it holds no unit.
  [[nodiscard]] std::optional<Moment> next() const;
  /// Gives it up as it is: somebody else has changed it, or it is gone.
  void forget(const std::string& path) { units_.erase(path); }
  /// Units that are stopped now.
  [[nodiscard]] std::vector<std::string> frozen() const;
  [[nodiscard]] bool holds(const std::string& path) const { return units_.contains(path); }
  [[nodiscard]] std::size_t size() const { return units_.size(); }

 private:
  struct Unit {
    core::FrozenShare share;
    Moment lease_ends{0};
    Moment turn{0};  ///< when its state changes next
    bool frozen = false;
    bool ending = false;
  };
  std::map<std::string, Unit> units_;
};

}  // namespace apusched::freezer
