// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "gpu_helper/protocol.hpp"

namespace apusched::gpu_helper {

/// When to take which sample. Pure: time comes in, decisions go out.
///
/// Deadlines are absolute (next = previous + slot), so lateness never accumulates; slots that
/// passed unused are counted, not made up for. With two sources their samples are half a period
/// apart: taken one after the other, the first would wake the GPU for the second.
class ProbeSchedule {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// The same mode again changes nothing; a changed one starts at once, with the first burst gap.
  void configure(const SetMode& mode, TimePoint now);

  /// Nothing while off.
  [[nodiscard]] std::optional<TimePoint> next() const { return next_; }

  struct Due {
    core::ProbeSource source;
    std::uint64_t missed;  ///< slots that passed unused before this one
  };
  /// The sample to take now, if its time has come; moves on to the next one.
  [[nodiscard]] std::optional<Due> take(TimePoint now);

 private:
  void advance(TimePoint now, std::uint64_t& missed);

  SetMode mode_;
  std::vector<core::ProbeSource> sources_;
  std::chrono::nanoseconds slot_{0};
  std::optional<TimePoint> next_;
  std::size_t turn_ = 0;             ///< index into sources_
  std::uint64_t left_in_burst_ = 0;  ///< samples, all sources together
  std::chrono::nanoseconds gap_{0};  ///< to the burst after this one
};

}  // namespace apusched::gpu_helper
