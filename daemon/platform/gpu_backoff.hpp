// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>

namespace apusched::platform {

/// Delay before the next start of something that keeps failing: doubles up to a limit, and is
/// small again after a long enough healthy life. Pure.
class Backoff {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Limits {
    std::chrono::milliseconds first{500};
    std::chrono::milliseconds most{60'000};
    std::chrono::milliseconds healthy_after{60'000};
  };

  explicit Backoff(Limits limits) : limits_(limits), next_(limits.first) {}

  void started(TimePoint now) { started_ = now; }
  /// How long to wait before the next start, after a failure now.
  [[nodiscard]] std::chrono::milliseconds failed(TimePoint now) {
    if (now - started_ >= limits_.healthy_after) next_ = limits_.first;
    const auto delay = next_;
    next_ = std::min(next_ * 2, limits_.most);
    return delay;
  }

 private:
  Limits limits_;
  std::chrono::milliseconds next_;
  TimePoint started_{};
};

}  // namespace apusched::platform
