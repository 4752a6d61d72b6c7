// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "core/control.hpp"

namespace apusched::core {
using namespace std::chrono_literals;
using What = ControlEvent::What;

inline constexpr double kTarget = 1.0;
inline constexpr auto kTick = 100ms;

/// A machine with rivals and levers. An observation is 0.1 alone and grows with what rivals use;
/// each lever takes away its share of that growth.
class Plant {
 public:
  struct Lever {
    Rung rung;
    double takes = 0.95;  ///< share of the contention that goes; negative: it makes it worse
  };

  explicit Plant(std::vector<Lever> levers, ControlSettings settings = with_target())
      : levers_(std::move(levers)), controller_(settings) {}

  static ControlSettings with_target() {
    ControlSettings settings;
    settings.target = kTarget;
    return settings;
  }

  /// Lets time pass in ticks under `rival` (share of the machine that others use).
  void run(Moment time, double rival) {
    for (const auto end = now_ + time; now_ < end; now_ += kTick) tick(rival);
  }
  void tick(double rival) {
    ControlInput input{now_, working, {}, rival, {}};
    for (const auto& lever : levers_) input.rungs.push_back(lever.rung);
    if (observed) input.observation = observe(rival);
    last = controller_.step(input);
    for (const auto& event : last.events) events.push_back({now_, event});
    for (const auto& name : last.engaged)
      if (!engaged_before_.contains(name)) engagements[name].push_back(now_);
    for (const auto& name : last.engaged) engaged_before_.contains(name) ? void() : void(++changes);
    for (const auto& name : engaged_before_)
      if (std::ranges::find(last.engaged, name) == last.engaged.end()) ++changes;
    engaged_before_ = {last.engaged.begin(), last.engaged.end()};
  }
  double observe(double rival) {
    double contention = 20 * rival;
    for (const auto& lever : levers_)
      if (engaged(lever.rung.name)) contention *= 1 - lever.takes;
    const double spread = noise > 0 ? std::lognormal_distribution<>(0, noise)(random_) : 1;
    return (0.1 + contention) * spread + (engaged(extra_goes_with) ? 0 : extra);
  }
  bool engaged(const std::string& name) const { return engaged_before_.contains(name); }
  std::size_t count(What what, const std::string& rung = {}) const {
    return static_cast<std::size_t>(std::ranges::count_if(events, [&](const auto& entry) {
      return entry.second.what == what && (rung.empty() || entry.second.rung == rung);
    }));
  }
  Lever& lever(const std::string& name) {
    return *std::ranges::find_if(levers_, [&](const Lever& l) { return l.rung.name == name; });
  }
  Moment now() const { return now_; }

  void seed(std::uint32_t value) { random_.seed(value); }

  bool working = true;
  bool observed = true;
  double noise = 0;
  double extra = 0;
  std::string extra_goes_with;  ///< a lever
  ControlOutput last;
  std::vector<std::pair<Moment, ControlEvent>> events;
  std::map<std::string, std::vector<Moment>> engagements;
  int changes = 0;

 private:
  std::vector<Lever> levers_;
  Controller controller_;
  Moment now_{10'000};
  std::set<std::string> engaged_before_;
  std::mt19937 random_{17};
};

inline Plant::Lever lever(const std::string& name, double takes = 0.99) {
  Plant::Lever made;
  made.rung.name = name;
  made.takes = takes;
  return made;
}

}  // namespace apusched::core
