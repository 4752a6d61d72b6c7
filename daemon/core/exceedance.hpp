// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace apusched::core {

/// A sequential test on how often observations exceed a target: two cumulative sums of the log
/// likelihood ratio (Page 1954). Decides as soon as the evidence is enough and knows when it is
/// not; a p99 from 20 samples a second would take 15 s. From whatever was before, three
/// exceedances in a row are a violation, or two by far with one observation between them, and eight
/// observations without are none.
class ExceedanceTest {
 public:
  enum class Verdict { undecided, meets, violates };

  /// Both in the observer's unit; a target of 0 is exceeded by far by all that is not 0.
  void add(double observation, double target);
  void restart() { *this = ExceedanceTest(); }
  [[nodiscard]] Verdict verdict() const;
  [[nodiscard]] std::uint32_t observations() const { return observations_; }
  /// How many of the last observations speak for a violation, taken together: those since the sum
  /// was lowest, the estimate of when a change began.
  [[nodiscard]] std::uint32_t since_change() const { return since_change_; }

  bool operator==(const ExceedanceTest&) const = default;

 private:
  double alarm_ = 0;  ///< never far below 0: a good past does not excuse the present
  double ease_ = 0;   ///< never above 0: nor does a bad one condemn it
  std::uint32_t observations_ = 0;
  std::uint32_t since_change_ = 0;
};

}  // namespace apusched::core
