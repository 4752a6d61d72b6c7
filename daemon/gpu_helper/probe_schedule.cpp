// SPDX-License-Identifier: MIT
#include "gpu_helper/probe_schedule.hpp"

#include <algorithm>

namespace apusched::gpu_helper {

using ports::ProbeMode;

void ProbeSchedule::configure(const SetMode& mode, TimePoint now) {
  if (mode == mode_) return;
  mode_ = mode;
  sources_.clear();
  next_.reset();
  turn_ = 0;
  if (mode.mode == ProbeMode::off) return;
  if (mode.queue) sources_.push_back(core::ProbeSource::queue);
  if (mode.kernel) sources_.push_back(core::ProbeSource::kernel);
  if (sources_.empty()) return;
  slot_ = mode.period / static_cast<std::int64_t>(sources_.size());
  left_in_burst_ = std::uint64_t{mode.burst_samples} * sources_.size();
  gap_ = mode.burst_interval;
  next_ = now;
}

std::optional<ProbeSchedule::Due> ProbeSchedule::take(TimePoint now) {
  if (!next_ || now < *next_) return std::nullopt;
  Due due{sources_[turn_], 0};
  turn_ = (turn_ + 1) % sources_.size();
  advance(now, due.missed);
  return due;
}

void ProbeSchedule::advance(TimePoint now, std::uint64_t& missed) {
  if (mode_.mode == ProbeMode::burst && --left_in_burst_ == 0) {
    // The gap runs from the last sample: a late burst must not eat into its own pause.
    left_in_burst_ = std::uint64_t{mode_.burst_samples} * sources_.size();
    next_ = now + gap_;
    gap_ = std::min(gap_ * 2, std::max(mode_.burst_interval, mode_.burst_interval_max));
    return;
  }
  missed = static_cast<std::uint64_t>((now - *next_) / slot_);
  *next_ += slot_ * static_cast<std::int64_t>(missed + 1);
}

}  // namespace apusched::gpu_helper
