// SPDX-License-Identifier: MIT
#include "core/exceedance.hpp"

#include <algorithm>

namespace apusched::core {
namespace {

// Logarithms are written out: replayed on another machine they must be the same to the last bit.
// While a target is missed half of all observations exceed it, one in ten by far; otherwise 4 in
// 100 do, and 1.5 in 1000 by far.
/// ln(0.4 / 0.04)
constexpr double kExceeds = 2.302585092994046;
/// ln(0.1 / 0.0015)
constexpr double kExceedsByFar = 4.199705077879927;
/// ln(0.5 / 0.9585)
constexpr double kWithin = -0.6507614640635074;
/// So many times the target is by far: a mean of a hundred waits, one of which took a time slice.
constexpr double kFar = 4;
/// ln(99): either verdict is wrong once in a hundred times.
constexpr double kBound = 4.59511985013459;
/// However good the past was, one exceedance makes up for it.
constexpr double kLowestAlarm = -kExceeds;

}  // namespace

void ExceedanceTest::add(double observation, double target) {
  double step = kWithin;
  if (observation > target) step = observation > kFar * target ? kExceedsByFar : kExceeds;
  ++observations_;
  alarm_ = std::clamp(alarm_ + step, kLowestAlarm, kBound);
  ease_ = std::clamp(ease_ + step, -kBound, 0.0);
  since_change_ = alarm_ <= kLowestAlarm ? 0 : since_change_ + 1;
}

ExceedanceTest::Verdict ExceedanceTest::verdict() const {
  if (alarm_ >= kBound) return Verdict::violates;
  if (ease_ <= -kBound) return Verdict::meets;
  return Verdict::undecided;
}

}  // namespace apusched::core
