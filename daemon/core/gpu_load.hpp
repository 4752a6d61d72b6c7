// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "core/agent.hpp"

/// How much work a process brings to a GPU, from what its agent reports. A value; no clock.
namespace apusched::core {

class GpuLoad {
 public:
  /// `now` on any monotonic clock. Reports of one agent, in their order.
  void add(const AgentReport& report, std::chrono::nanoseconds now);
  /// A look that found no new samples: an agent that has stopped looking is in a program that has
  /// stopped.
  void add_silence();
  /// Share of the samples that found packets waiting, 0..1, smoothed.
  [[nodiscard]] double busy() const { return busy_; }
  /// Mean, over the last tenth of a second or more.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> task_length() const { return length_; }
  /// More work waits than the GPU gets done soon: queue depth times task length. It stays so until
  /// a good part of that is done, for a division of CUs must not follow every fluctuation.
  [[nodiscard]] bool behind() const { return behind_; }

 private:
  struct Point {
    std::uint64_t samples = 0, busy_samples = 0, backlog_sum = 0, taken = 0;
    std::chrono::nanoseconds at{0};
  };
  void note_length(const Point& point);
  void judge();

  std::optional<Point> last_;
  std::optional<Point> length_since_;
  double busy_ = 0;
  double depth_ = 0;  ///< packets waiting, smoothed
  std::optional<std::chrono::nanoseconds> length_;
  bool behind_ = false;
};

}  // namespace apusched::core
