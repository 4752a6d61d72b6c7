// SPDX-License-Identifier: MIT
#include "freezer/duty_cycles.hpp"

#include <gtest/gtest.h>

namespace apusched::freezer {
namespace {

using namespace std::chrono_literals;
using Steps = std::vector<DutyCycles::Step>;
using core::FrozenShare;

const std::string kUnit = "/a.service";
constexpr auto kHalf = FrozenShare::of<50>();
constexpr auto kNothing = FrozenShare::of<0>();

TEST(DutyCycle, begins_by_running_and_stops_for_its_share_of_each_period) {
  DutyCycles cycles;
  cycles.set(kUnit, kHalf, 0ms);
  EXPECT_EQ(cycles.due(39ms), Steps{});
  EXPECT_EQ(cycles.next(), 40ms);
  EXPECT_EQ(cycles.due(40ms), (Steps{{kUnit, true}}));
  EXPECT_EQ(cycles.due(79ms), Steps{});
  EXPECT_EQ(cycles.due(80ms), (Steps{{kUnit, false}}));
}

TEST(DutyCycle, adds_up_to_the_share_over_many_periods) {
  for (const auto percent : {1, 30, 90}) {
    DutyCycles cycles;
    const auto share = *FrozenShare::make(percent);
    Moment stopped{0};
    for (Moment now{0}; now < 80s; now += 1ms) {
      if (now % 250ms == 0ms) cycles.set(kUnit, share, now);
      static_cast<void>(cycles.due(now));
      if (!cycles.frozen().empty()) stopped += 1ms;
    }
    EXPECT_NEAR(static_cast<double>(stopped.count()) / 80000, percent / 100.0, 0.02);
  }
}

TEST(DutyCycle, runs_again_when_nobody_renews_it) {
  DutyCycles cycles;
  cycles.set(kUnit, FrozenShare::of<90>(), 0ms);
  Steps last;
  for (Moment now{0}; now <= kLease; now += 1ms)
    if (auto steps = cycles.due(now); !steps.empty()) last = steps;
  EXPECT_EQ(last, (Steps{{kUnit, false}}));
  EXPECT_FALSE(cycles.holds(kUnit));
  EXPECT_EQ(cycles.next(), std::nullopt);
}

TEST(DutyCycle, is_let_run_at_once_when_it_ends) {
  DutyCycles cycles;
  cycles.set(kUnit, kHalf, 0ms);
  ASSERT_EQ(cycles.due(40ms), (Steps{{kUnit, true}}));
  cycles.set(kUnit, kNothing, 41ms);
  EXPECT_EQ(cycles.due(41ms), (Steps{{kUnit, false}}));
  EXPECT_EQ(cycles.size(), 0U);
}

TEST(DutyCycle, that_ends_while_it_runs_needs_nothing) {
  DutyCycles cycles;
  cycles.set(kUnit, kHalf, 0ms);
  cycles.set(kUnit, kNothing, 1ms);
  EXPECT_EQ(cycles.due(1ms), Steps{});
  EXPECT_EQ(cycles.size(), 0U);
}

TEST(DutyCycle, a_late_look_does_not_stop_it_for_longer_than_its_share) {
  DutyCycles cycles;
  cycles.set(kUnit, kHalf, 0ms);
  ASSERT_EQ(cycles.due(500ms), (Steps{{kUnit, true}}));
  EXPECT_EQ(cycles.next(), 540ms);
}

TEST(DutyCycle, units_take_their_turns_apart) {
  DutyCycles cycles;
  cycles.set("/a", kHalf, 0ms);
  cycles.set("/b", FrozenShare::of<25>(), 0ms);
  EXPECT_EQ(cycles.due(40ms), (Steps{{"/a", true}}));
  EXPECT_EQ(cycles.due(60ms), (Steps{{"/b", true}}));
  EXPECT_EQ(cycles.due(80ms), (Steps{{"/a", false}, {"/b", false}}));
}

}  // namespace
}  // namespace apusched::freezer
