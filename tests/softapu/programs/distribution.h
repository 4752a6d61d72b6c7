// SPDX-License-Identifier: MIT
// Latencies of a program, kept whole: percentiles are samples that were seen.
#pragma once

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

namespace apusched::softapu {

// Not thread-safe: its owner locks. The first million samples.
class Distribution {
 public:
  void add(std::chrono::nanoseconds value) {
    if (values_.size() < kMost) values_.push_back(static_cast<double>(value.count()) / 1000);
  }
  // In microseconds; without samples the count alone.
  [[nodiscard]] nlohmann::json summary() const {
    if (values_.empty()) return {{"count", 0}};
    std::vector<double> sorted = values_;
    std::sort(sorted.begin(), sorted.end());
    const auto at = [&](double share) {
      const auto last = static_cast<double>(sorted.size() - 1);
      return sorted[static_cast<std::size_t>(share * last + 0.5)];
    };
    return {{"count", sorted.size()}, {"p50", at(0.50)}, {"p90", at(0.90)},
            {"p95", at(0.95)},        {"p99", at(0.99)}, {"p99.9", at(0.999)},
            {"max", sorted.back()}};
  }

 private:
  static constexpr std::size_t kMost = 1'000'000;
  std::vector<double> values_;
};

}  // namespace apusched::softapu
