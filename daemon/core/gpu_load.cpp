// SPDX-License-Identifier: MIT
#include "core/gpu_load.hpp"

namespace apusched::core {
namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

/// Of each look, ten a second: what a process did a second ago counts for little.
constexpr double kGain = 0.3;
constexpr std::uint64_t kEnoughSamples = 10;
/// A token of 50 a second takes 20 ms: half of that in front of it is felt.
constexpr nanoseconds kBehind = 10ms;
constexpr nanoseconds kCaughtUp = 4ms;

double per_sample(std::uint64_t before, std::uint64_t after, std::uint64_t samples) {
  return static_cast<double>(after - before) / static_cast<double>(samples);
}

}  // namespace

void GpuLoad::add(const AgentReport& report, nanoseconds now) {
  const Point point{report.samples, report.busy_samples, report.backlog_sum, report.taken, now};
  const auto last = last_;
  last_ = point;
  if (!length_since_) length_since_ = point;
  if (!last || point.samples <= last->samples) return;
  const auto samples = point.samples - last->samples;
  busy_ += kGain * (per_sample(last->busy_samples, point.busy_samples, samples) - busy_);
  depth_ += kGain * (per_sample(last->backlog_sum, point.backlog_sum, samples) - depth_);
  note_length(point);
  judge();
}

void GpuLoad::add_silence() {
  busy_ -= kGain * busy_;
  depth_ -= kGain * depth_;
  judge();
}

void GpuLoad::judge() {
  if (!length_) return;
  const auto waiting = depth_ * static_cast<double>(length_->count());
  behind_ = waiting >= static_cast<double>((behind_ ? kCaughtUp : kBehind).count());
}

/// By the utilisation law: the share of samples that found work, over the packets taken per second.
void GpuLoad::note_length(const Point& point) {
  const auto samples = point.samples - length_since_->samples;
  if (samples < kEnoughSamples || point.taken <= length_since_->taken) return;
  const auto busy = per_sample(length_since_->busy_samples, point.busy_samples, samples);
  const auto between = static_cast<double>((point.at - length_since_->at).count());
  const auto packets = static_cast<double>(point.taken - length_since_->taken);
  length_ = nanoseconds(static_cast<std::int64_t>(busy * between / packets));
  length_since_ = point;
}

}  // namespace apusched::core
