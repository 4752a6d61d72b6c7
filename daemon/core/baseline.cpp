// SPDX-License-Identifier: MIT
#include "core/baseline.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace apusched::core {
namespace {

/// Two seconds at ten observations a second: a new model in the same process is soon the yardstick.
constexpr std::size_t kUndisturbed = 20;
constexpr std::size_t kLeast = 5;

}  // namespace

void Baseline::add(double observation, bool undisturbed) {
  recent_.push_back(observation);
  if (recent_.size() > kLeast) recent_.pop_front();
  if (recent_.size() == kLeast) {
    const auto mean = std::accumulate(recent_.begin(), recent_.end(), 0.0) / double{kLeast};
    best_ = std::min(best_.value_or(mean), mean);
  }
  if (!undisturbed) return;
  undisturbed_.push_back(observation);
  if (undisturbed_.size() > kUndisturbed) undisturbed_.pop_front();
}

std::optional<double> Baseline::undisturbed() const {
  if (undisturbed_.size() < kLeast) return std::nullopt;
  std::vector<double> sorted(undisturbed_.begin(), undisturbed_.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle;
}

double Baseline::target(PercentOf allowed, bool explored) const {
  constexpr double kWhole = 100;
  const double factor = allowed.value() / kWhole;
  if (const auto known = undisturbed()) return *known * factor;
  if (explored && best_) return *best_ * factor;
  return 0;
}

}  // namespace apusched::core
