// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace apusched::core {

/// A sequential test on how often observations exceed a target: two cumulative sums of the log
/// likelihood ratio (Page 1954). Decides as soon as the evidence is enough and knows when it is
/// not; a p99 from 20 samples a second would take 15 s. From whatever was before, three
/// exceedances in a row are a violation, and eight observations without are none.
class ExceedanceTest {
 public:
  enum class Verdict { undecided, meets, violates };

  void add(bool exceeds);
  void restart() { *this = ExceedanceTest(); }
  [[nodiscard]] Verdict verdict() const;
  [[nodiscard]] std::uint32_t observations() const { return observations_; }
  [[nodiscard]] std::uint32_t exceedances() const { return exceedances_; }

  bool operator==(const ExceedanceTest&) const = default;

 private:
  double alarm_ = 0;  ///< never far below 0: a good past does not excuse the present
  double ease_ = 0;   ///< never above 0: nor does a bad one condemn it
  std::uint32_t observations_ = 0;
  std::uint32_t exceedances_ = 0;
};

}  // namespace apusched::core
