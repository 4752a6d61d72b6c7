// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <ranges>

namespace apusched::core {

/// Share of the pairs in which a value of `lower` is below one of `higher`, ties by half: Mann and
/// Whitney's U over its greatest value. 0.5 is no difference; 0 where there is nothing to compare.
template <std::ranges::sized_range Lower, std::ranges::sized_range Higher>
[[nodiscard]] double superiority(const Lower& lower, const Higher& higher) {
  constexpr double kTie = 0.5;
  double better = 0;
  for (const double a : lower)
    for (const double b : higher) better += a < b ? 1 : a > b ? 0 : kTie;
  const auto pairs = std::ranges::size(lower) * std::ranges::size(higher);
  return pairs == 0 ? 0 : better / static_cast<double>(pairs);
}

}  // namespace apusched::core
