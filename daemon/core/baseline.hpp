// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include "core/types.hpp"

namespace apusched::core {

/// What a latency is while nobody is in the way: the yardstick for a target that nobody can know in
/// advance, as it depends on the model, the engine and the machine. A value; no clock.
class Baseline {
 public:
  /// `undisturbed`: no rival was at work and no lever was held.
  void add(double observation, bool undisturbed);
  /// Median of the last undisturbed observations, once there are enough.
  [[nodiscard]] std::optional<double> undisturbed() const;
  /// Above this an observation is too long; `allowed` is a share of the yardstick, above 100 %.
  /// Before the process was ever seen undisturbed the best stretch so far is the yardstick, but
  /// for the time when everything is still to be tried (`explored` false): then anything is too
  /// long.
  [[nodiscard]] double target(PercentOf allowed, bool explored) const;

 private:
  std::deque<double> undisturbed_;
  std::deque<double> recent_;
  std::optional<double> best_;  ///< lowest mean of a full `recent_`
};

}  // namespace apusched::core
