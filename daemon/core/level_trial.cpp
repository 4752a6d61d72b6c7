// SPDX-License-Identifier: MIT
#include "core/level_trial.hpp"

#include <algorithm>
#include <numeric>

#include "core/superiority.hpp"

namespace apusched::core {
namespace {

/// Means of a half second each, at two a second.
constexpr std::size_t kCompared = 10;
/// As in ControlSettings::min_superiority: chance alone reaches this once in about eighty times.
constexpr double kSuperiority = 0.8;

}  // namespace

void LevelTrial::Stretch::add(const LevelInput& input) {
  if (input.latency_us) latencies.push_back(*input.latency_us);
  if (latencies.size() > kCompared) latencies.pop_front();
  if (!input.watts) return;
  watts += *input.watts;
  ++readings;
}

bool LevelTrial::Stretch::full() const {
  return latencies.size() == kCompared;
}

double LevelTrial::Stretch::mean() const {
  return std::accumulate(latencies.begin(), latencies.end(), 0.0) /
         static_cast<double>(std::max<std::size_t>(1, latencies.size()));
}

double LevelTrial::Stretch::mean_watts() const {
  return readings == 0 ? 0 : watts / readings;
}

void LevelTrial::begin(Phase phase, bool hold, Moment now) {
  phase_ = phase;
  hold_ = hold;
  since_ = now;
  now_ = {};
}

/// Why it must not be held whatever it does for latency; empty: nothing stands against it.
std::string LevelTrial::obstacle(const LevelInput& input) {
  if (!worked_ || input.working) worked_ = input.now;
  if (settings_.max_celsius && input.celsius) {
    if (*input.celsius >= *settings_.max_celsius) hot_ = true;
    if (*input.celsius < *settings_.max_celsius - settings_.cool_down_celsius) hot_ = false;
  }
  if (hot_) return "the GPU is too hot";
  if (input.saving && !settings_.on_battery) return "the machine is to save power";
  if (input.now - *worked_ >= settings_.idle_after) return "nothing works on the GPU";
  return {};
}

LevelTrial::Output LevelTrial::step(const LevelInput& input) {
  Output output;
  output.why = obstacle(input);
  if (!output.why.empty()) {
    // What was being compared is worth nothing with a pause in between.
    if (phase_ == Phase::comparing) hold_ = !hold_;
    interrupted_ = true;
    phase_ = Phase::settled;
    output.hold = false;
    return output;
  }
  if (interrupted_) begin(Phase::settled, hold_, input.now);
  interrupted_ = false;
  if (input.now - since_ >= settings_.settle) now_.add(input);
  if (phase_ == Phase::comparing) {
    compare(input, output);
  } else if (settings_.check_after > Moment{0} && input.now - since_ >= next_after_ &&
             now_.full()) {
    before_ = now_;
    begin(Phase::comparing, !hold_, input.now);
  }
  output.hold = hold_;
  if (!hold_ && phase_ == Phase::comparing)
    output.why = "let go for a moment to see what it is worth";
  else if (!hold_)
    output.why = "it does not pay: dispatches are hardly slower without";
  return output;
}

void LevelTrial::compare(const LevelInput& input, Output& output) {
  if (!now_.full()) return;
  const bool pays_off = hold_ ? pays(now_, before_) : pays(before_, now_);
  const bool same_as_before = pays_off != hold_;
  next_after_ =
      same_as_before ? std::min(next_after_ * 2, settings_.check_after_max) : settings_.check_after;
  output.event = pays_off ? "the level pays" : "the level does not pay";
  output.before = before_.mean();
  output.after = now_.mean();
  begin(Phase::settled, pays_off, input.now);
}

bool LevelTrial::pays(const Stretch& with, const Stretch& without) const {
  const double gain = without.mean() > 0 ? 1 - with.mean() / without.mean() : 0;
  double needed = settings_.min_gain;
  if (with.readings > 0 && without.readings > 0)
    needed = std::max(needed, settings_.gain_per_watt * (with.mean_watts() - without.mean_watts()));
  return gain >= needed && superiority(with.latencies, without.latencies) >= kSuperiority;
}

}  // namespace apusched::core
