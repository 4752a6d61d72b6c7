// SPDX-License-Identifier: MIT
#include "core/latency_window.hpp"

#include <algorithm>
#include <vector>

namespace apusched::core {

LatencyWindow::LatencyWindow(std::size_t capacity)
    : capacity_(std::max<std::size_t>(capacity, 1)) {}

void LatencyWindow::add(std::chrono::nanoseconds latency) {
  if (samples_.size() == capacity_) samples_.pop_front();
  samples_.push_back(latency);
  ++total_;
}

void LatencyWindow::clear() {
  samples_.clear();
}

std::optional<LatencySummary> LatencyWindow::summary() const {
  if (total_ == 0 && lost_ == 0) return std::nullopt;
  LatencySummary result;
  result.total = total_;
  result.lost = lost_;
  result.in_window = samples_.size();
  if (samples_.empty()) return result;
  std::vector<std::chrono::nanoseconds> sorted(samples_.begin(), samples_.end());
  std::ranges::sort(sorted);
  const auto rank = [&](std::size_t percent) {
    const auto nth = (sorted.size() * percent + 99) / 100;
    return sorted[std::max<std::size_t>(nth, 1) - 1];
  };
  result.p50 = rank(50);
  result.p95 = rank(95);
  result.p99 = rank(99);
  result.max = sorted.back();
  return result;
}

}  // namespace apusched::core
