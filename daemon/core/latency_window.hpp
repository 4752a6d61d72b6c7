// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace apusched::core {

struct LatencySummary {
  std::uint64_t total = 0;  ///< samples ever, including those that left the window
  std::uint64_t lost = 0;   ///< samples that missed their deadline, ever
  std::size_t in_window = 0;
  std::chrono::nanoseconds p50{0};
  std::chrono::nanoseconds p95{0};
  std::chrono::nanoseconds p99{0};
  std::chrono::nanoseconds max{0};
  bool operator==(const LatencySummary&) const = default;
};

/// The last N latency samples of one source. Percentiles by nearest rank, so every figure shown
/// is a sample that was really seen. Not thread-safe; no clock of its own.
class LatencyWindow {
 public:
  explicit LatencyWindow(std::size_t capacity);
  void add(std::chrono::nanoseconds latency);
  void add_lost() { ++lost_; }
  void clear();
  /// Nothing until the first sample.
  [[nodiscard]] std::optional<LatencySummary> summary() const;

 private:
  std::size_t capacity_;
  std::deque<std::chrono::nanoseconds> samples_;
  std::uint64_t total_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace apusched::core
