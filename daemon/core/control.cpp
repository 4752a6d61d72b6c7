// SPDX-License-Identifier: MIT
#include "core/control.hpp"

#include <algorithm>
#include <utility>

#include "core/superiority.hpp"

namespace apusched::core {
namespace {

/// Enough to compare, few enough to be quick: half a second at ten observations a second.
constexpr std::size_t kStretch = 5;
/// An experiment that the test cannot decide ends after so many observations, by its means.
constexpr std::size_t kEnough = 20;
constexpr std::size_t kReversalSamples = 3;
/// Seen to help that often in a row, each time after a time without it.
constexpr std::uint32_t kConfirmed = 2;
/// Rivals that use less than this share of what they used explain an improvement by themselves.
constexpr double kRivalFell = 0.5;
/// Contention that is back within this many times `relax_after` had not ended.
constexpr int kSoon = 4;

/// What fails again and again is tried ever more rarely: each time costs others something.
constexpr int kMostDoublings = 4;
constexpr std::string_view kOthersUseLess = "others use less meanwhile: that may be why";

using What = ControlEvent::What;
using Verdict = ExceedanceTest::Verdict;

/// Null where the ladder has none of that name now.
const Rung* rung_named(const ControlInput& input, const std::string& name) {
  const auto found = std::ranges::find(input.rungs, name, &Rung::name);
  return found == input.rungs.end() ? nullptr : &*found;
}

}  // namespace

void Controller::Stretch::add(const Sample& sample, std::size_t most) {
  samples_.push_back(sample);
  keep_newest(most);
}

void Controller::Stretch::keep_newest(std::size_t count) {
  while (samples_.size() > count) samples_.pop_front();
}

double Controller::Stretch::mean() const {
  double sum = 0;
  for (const auto& sample : samples_) sum += sample.observation;
  return samples_.empty() ? 0 : sum / static_cast<double>(samples_.size());
}

double Controller::Stretch::mean_rival() const {
  double sum = 0;
  for (const auto& sample : samples_) sum += sample.rival;
  return samples_.empty() ? 0 : sum / static_cast<double>(samples_.size());
}

double Controller::Stretch::superiority_of(const Stretch& after) const {
  const auto observation = [](const Sample& sample) { return sample.observation; };
  return superiority(after.samples_ | std::views::transform(observation),
                     samples_ | std::views::transform(observation));
}

Controller::Memory& Controller::memory(const std::string& name) {
  const auto found = std::ranges::find(memories_, name, &Memory::name);
  if (found != memories_.end()) return *found;
  return memories_.emplace_back(Memory{name, {}, {}, 0, 0, 0, 0, true, {}, {}});
}

bool Controller::is_engaged(const std::string& name) const {
  return std::ranges::find(engaged_, name) != engaged_.end();
}

bool Controller::may_change(const std::string& name, Moment now) {
  const auto& changed = memory(name).changed;
  return !changed || now - *changed >= settings_.change_interval;
}

void Controller::fresh_start() {
  test_.restart();
  stretch_.clear();
  measuring_before_ = false;
}

void Controller::engage(const Rung& rung, Moment now) {
  engaged_.push_back(rung.name);
  auto& known = memory(rung.name);
  known.changed = now;
  known.watts = rung.watts;
  known.needs_rival = rung.needs_rival;
  const bool soon = known.checked && now - *known.checked < settings_.check_after;
  known.check_after =
      soon ? std::min(known.check_after * 2, settings_.check_after_max) : settings_.check_after;
  known.checked.reset();
  settled_ = now + rung.settle;
  fresh_start();
}

void Controller::disengage(const std::string& name, Moment now) {
  std::erase(engaged_, name);
  memory(name).changed = now;
  if (experiment_ && experiment_->rung == name) experiment_.reset();
  fresh_start();
}

void Controller::enter(ControlState state, ControlOutput& output, const std::string& why) {
  if (state != state_)
    output.events.push_back({What::state, {}, std::string(to_string(state)) + why, 0, 0});
  state_ = state;
}

ControlOutput Controller::step(const ControlInput& input) {
  ControlOutput output;
  if (!worked_ || input.working) worked_ = input.now;
  if (!observed_ || input.observation) observed_ = input.now;
  drop_unavailable(input, output);
  if (input.now - *worked_ >= settings_.stale_after) {
    let_go(input.now, output, "the process is idle");
    enter(ControlState::idle, output, ": the process does nothing");
  } else if (input.now - *observed_ >= settings_.stale_after) {
    if (input.now - *observed_ >= settings_.let_go_after)
      let_go(input.now, output, "nothing is observed any more");
    enter(ControlState::failsafe, output, ": nothing is observed");
  } else {
    await_writing(input);
    observe(input);
    if (test_.verdict() != Verdict::violates) measuring_before_ = false;
    if (experiment_)
      conclude(input, output);
    else if (test_.verdict() == Verdict::violates)
      climb(input, output);
    relax(input, output);
    if (state_ != ControlState::saturated || test_.verdict() == Verdict::meets)
      enter(judge(), output, {});
  }
  output.state = state_;
  output.engaged = engaged_;
  return output;
}

/// systemd is one of those that have to wait for a CPU: it took 0.7 s on a slow machine.
void Controller::await_writing(const ControlInput& input) {
  if (!experiment_) return;
  const auto* rung = rung_named(input, experiment_->rung);
  if (rung != nullptr && rung->being_written) settled_ = input.now + rung->settle;
}

void Controller::observe(const ControlInput& input) {
  if (input.rival >= settings_.rival_floor)
    rival_gone_.reset();
  else if (!rival_gone_)
    rival_gone_ = input.now;
  if (!input.observation || input.now < settled_) return;
  test_.add(*input.observation, input.target.value_or(settings_.target));
  stretch_.add({*input.observation, input.rival}, stretch_length());
}

void Controller::drop_unavailable(const ControlInput& input, ControlOutput& output) {
  const auto engaged = engaged_;
  for (const auto& name : engaged) {
    const auto* rung = rung_named(input, name);
    if (rung != nullptr && rung->available) continue;
    disengage(name, input.now);
    output.events.push_back({What::released, name,
                             rung == nullptr ? "there is nothing to set any more" : rung->why_not,
                             0, 0});
  }
}

const Rung* Controller::next_rung(const ControlInput& input) {
  const Rung* chosen = nullptr;
  for (const auto& rung : input.rungs) {
    auto& known = memory(rung.name);
    if (known.blocked_until && input.now >= *known.blocked_until) known.blocked_until.reset();
    if (!rung.available || is_engaged(rung.name) || known.blocked_until) continue;
    if (rung.needs_rival && input.rival < settings_.rival_floor) continue;
    if (known.helped >= kConfirmed) return &rung;
    if (chosen == nullptr) chosen = &rung;
  }
  return chosen;
}

std::size_t Controller::stretch_length() const {
  return settings_.compared == 0 ? kStretch : settings_.compared;
}

bool Controller::knows_before() {
  if (settings_.compared == 0) return true;
  if (!std::exchange(measuring_before_, true)) stretch_.clear();
  return stretch_.size() >= settings_.compared;
}

/// What was seen before contention began is not what the lever found.
Controller::Stretch Controller::what_is_before() const {
  auto before = stretch_;
  if (settings_.compared == 0) before.keep_newest(test_.since_change());
  return before;
}

bool Controller::knows_after() const {
  if (settings_.compared != 0) return stretch_.size() >= settings_.compared;
  return test_.verdict() != Verdict::undecided || test_.observations() >= kEnough;
}

bool Controller::helped(const Stretch& without, const Stretch& with) const {
  return with.mean() <= without.mean() * (1 - settings_.min_gain) &&
         without.superiority_of(with) >= settings_.min_superiority;
}

bool Controller::rival_fell_since(const Stretch& before) const {
  return stretch_.mean_rival() < kRivalFell * before.mean_rival();
}

void Controller::climb(const ControlInput& input, ControlOutput& output) {
  const auto* rung = next_rung(input);
  if (rung == nullptr) return enter(ControlState::saturated, output, saturation(input));
  if (!may_change(rung->name, input.now)) return;
  if (!knows_before()) return enter(ControlState::violating, output, {});
  if (relaxed_ && engaged_against_rivals().empty()) {
    const bool soon = input.now - *relaxed_ < kSoon * relax_after_;
    relax_after_ =
        soon ? std::min(relax_after_ * 2, settings_.relax_after_max) : settings_.relax_after;
  }
  const auto before = what_is_before();
  engage(*rung, input.now);
  experiment_ = Experiment{rung->name, Phase::with, before};
  output.events.push_back({What::tried, rung->name, "the target is exceeded", before.mean(), 0});
  enter(ControlState::violating, output, {});
}

std::string Controller::saturation(const ControlInput& input) {
  std::string text;
  for (const auto& rung : input.rungs) {
    text += text.empty() ? ": " : "; ";
    text += rung.name;
    if (is_engaged(rung.name))
      text += " is in force";
    else if (!rung.available)
      text += " cannot act: " + rung.why_not;
    else if (memory(rung.name).blocked_until)
      text += " did not help";
    else
      text += " has nobody to act against";
  }
  return text.empty() ? ": there is nothing to set" : text;
}

void Controller::conclude(const ControlInput& input, ControlOutput& output) {
  if (input.now < settled_ || !may_change(experiment_->rung, input.now)) return;
  if (experiment_->phase == Phase::reversal) return conclude_reversal(input, output);
  if (!knows_after()) return;
  if (experiment_->phase == Phase::confirmation) return conclude_confirmation(input, output);
  const auto tried = std::move(*experiment_);
  experiment_.reset();
  const double before = tried.before.mean();
  const double after = stretch_.mean();
  if (rival_fell_since(tried.before) && after < before) {
    output.events.push_back(
        {What::inconclusive, tried.rung, std::string(kOthersUseLess), before, after});
  } else if (!helped(tried.before, stretch_)) {
    try_without(Phase::reversal, tried.rung, input);
    return undo(tried.rung, "it did not help", {before, after}, input.now, output);
  } else if (after > before * (1 - settings_.sure_gain) && memory(tried.rung).helped < kConfirmed) {
    return try_without(Phase::confirmation, tried.rung, input);
  } else {
    keep(tried.rung, {before, after}, output);
  }
  fresh_start();
}

/// What is seen from now on is compared with what was seen with the lever.
void Controller::try_without(Phase phase, const std::string& name, const ControlInput& input) {
  const auto with = stretch_;
  disengage(name, input.now);
  const auto* rung = rung_named(input, name);
  settled_ = input.now + (rung == nullptr ? Moment{0} : rung->settle);
  experiment_ = Experiment{name, phase, with};
}

void Controller::keep(const std::string& name, Means means, ControlOutput& output) {
  auto& known = memory(name);
  ++known.helped;
  known.failed = 0;
  known.gain = 1 - means.after / means.before;
  const bool again = known.helped == kConfirmed;
  output.events.push_back({again ? What::confirmed : What::kept, name,
                           again ? "it helped again after a time without it" : "it helped",
                           means.before, means.after});
}

void Controller::undo(const std::string& name, const std::string& why, Means means, Moment now,
                      ControlOutput& output) {
  auto& known = memory(name);
  known.helped = 0;
  known.blocked_until = now + settings_.retry_after * (1 << std::min(known.failed, kMostDoublings));
  output.events.push_back({What::undone, name, why, means.before, means.after});
}

/// Without the lever it must not be worse than with it: load that grew during the experiment would
/// have made a good lever look bad. What was seen serves as what is before the next one.
void Controller::conclude_reversal(const ControlInput& input, ControlOutput& output) {
  if (stretch_.size() < (settings_.compared == 0 ? kReversalSamples : settings_.compared)) return;
  const auto undone = std::move(*experiment_);
  experiment_.reset();
  const double with = undone.before.mean();
  const double without = stretch_.mean();
  measuring_before_ = true;
  auto& known = memory(undone.rung);
  if (!helped(stretch_, undone.before)) {
    ++known.failed;
    return;
  }
  known.blocked_until = input.now + settings_.change_interval;
  output.events.push_back({What::inconclusive, undone.rung,
                           "it is worse without: the load had grown meanwhile", without, with});
}

/// A small gain may be chance, or a load that shrank meanwhile: then it is as good without.
void Controller::conclude_confirmation(const ControlInput& input, ControlOutput& output) {
  const auto tried = std::move(*experiment_);
  experiment_.reset();
  const auto& with = tried.before;
  const Means means{stretch_.mean(), with.mean()};
  const auto* rung = rung_named(input, tried.rung);
  if (helped(stretch_, with) && rung != nullptr && rung->available) {
    engage(*rung, input.now);
    keep(tried.rung, means, output);
  } else if (rival_fell_since(with)) {
    output.events.push_back(
        {What::inconclusive, tried.rung, std::string(kOthersUseLess), means.before, means.after});
  } else {
    undo(tried.rung, "it is as good without", means, input.now, output);
    ++memory(tried.rung).failed;
  }
  fresh_start();
}

std::vector<std::string> Controller::engaged_against_rivals() {
  std::vector<std::string> names;
  for (const auto& name : engaged_)
    if (memory(name).needs_rival) names.push_back(name);
  return names;
}

/// Contention has ended when the rivals' activity has, not when a working lever hides it. It says
/// nothing about what acts without rivals.
void Controller::relax(const ControlInput& input, ControlOutput& output) {
  if (engaged_.empty() || test_.verdict() == Verdict::violates) return;
  const bool ended = rival_gone_ && input.now - *rival_gone_ >= relax_after_;
  if (const auto names = engaged_against_rivals(); ended && !names.empty()) {
    let_go(names, input.now, output, "contention has ended");
    for (auto& known : memories_) {
      known.failed = 0;
      if (known.blocked_until)
        known.blocked_until = std::min(*known.blocked_until, input.now + settings_.retry_after);
    }
    relaxed_ = input.now;
  }
  check_need(input, output);
}

/// Nothing but a time without it tells whether what acts without rivals is still needed.
void Controller::check_need(const ControlInput& input, ControlOutput& output) {
  if (experiment_ || test_.verdict() != Verdict::meets) return;
  const auto engaged = engaged_;
  for (const auto& name : engaged) {
    auto& known = memory(name);
    if (known.needs_rival || input.now - *known.changed < known.check_after) continue;
    known.checked = input.now;
    return let_go({name}, input.now, output, "to see whether it is still needed");
  }
}

/// That with the least benefit per watt; of those that cost nothing, the last.
std::string Controller::least_worth(const std::vector<std::string>& names) {
  auto worst = names.back();
  double least = -1;
  for (const auto& name : names) {
    const auto& known = memory(name);
    if (known.watts <= 0) continue;
    const double worth = known.gain / known.watts;
    if (least >= 0 && worth >= least) continue;
    least = worth;
    worst = name;
  }
  return worst;
}

void Controller::let_go(Moment now, ControlOutput& output, const std::string& why) {
  let_go(engaged_, now, output, why);
  experiment_.reset();
}

void Controller::let_go(std::vector<std::string> names, Moment now, ControlOutput& output,
                        const std::string& why) {
  while (!names.empty()) {
    const auto name = least_worth(names);
    std::erase(names, name);
    disengage(name, now);
    output.events.push_back({What::released, name, why, 0, 0});
  }
  if (experiment_ && memory(experiment_->rung).needs_rival) experiment_.reset();
}

bool Controller::is_at_rest() const {
  return engaged_.empty() && !experiment_ &&
         (test_.verdict() == Verdict::meets || test_.observations() == 0);
}

ControlState Controller::judge() const {
  if (experiment_ || test_.verdict() == Verdict::violates) return ControlState::violating;
  if (test_.verdict() == Verdict::meets) return ControlState::meeting;
  const bool known = state_ == ControlState::meeting || state_ == ControlState::violating;
  return known ? state_ : ControlState::observing;
}

}  // namespace apusched::core
