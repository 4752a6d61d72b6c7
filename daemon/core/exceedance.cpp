// SPDX-License-Identifier: MIT
#include "core/exceedance.hpp"

#include <algorithm>

namespace apusched::core {
namespace {

// Logarithms are written out: replayed on another machine they must be the same to the last bit.
/// ln(0.5 / 0.05): half of all observations over the target is bad, one in twenty is not.
constexpr double kExceeds = 2.302585092994046;
/// ln(0.5 / 0.95)
constexpr double kWithin = -0.6418538861723948;
/// ln(99): either verdict is wrong once in a hundred times.
constexpr double kBound = 4.59511985013459;

}  // namespace

void ExceedanceTest::add(bool exceeds) {
  const double step = exceeds ? kExceeds : kWithin;
  ++observations_;
  if (exceeds) ++exceedances_;
  alarm_ = std::clamp(alarm_ + step, -kExceeds, kBound);
  ease_ = std::clamp(ease_ + step, -kBound, 0.0);
}

ExceedanceTest::Verdict ExceedanceTest::verdict() const {
  if (alarm_ >= kBound) return Verdict::violates;
  if (ease_ <= -kBound) return Verdict::meets;
  return Verdict::undecided;
}

}  // namespace apusched::core
