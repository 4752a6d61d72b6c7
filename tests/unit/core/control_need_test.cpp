// SPDX-License-Identifier: MIT
// The controller and what acts without rivals.
#include "plant.hpp"

namespace apusched::core {
namespace {

/// What is too long without rivals, and is not with a lever that costs power.
Plant slow_wake_ups(Plant::Lever others = lever("weight")) {
  auto wake = lever("wake", 0);
  wake.rung.needs_rival = false;
  wake.rung.watts = 1;
  Plant plant({std::move(others), wake});
  plant.extra = 5;
  plant.extra_goes_with = "wake";
  return plant;
}

TEST(Controller, holds_what_acts_without_rivals_for_as_long_as_it_is_needed) {
  auto plant = slow_wake_ups();
  plant.run(20s, 0.0);
  EXPECT_TRUE(plant.engaged("wake"));
  EXPECT_EQ(plant.changes, 1);
  EXPECT_EQ(plant.last.state, ControlState::meeting);
}

TEST(Controller, asks_ever_more_rarely_whether_it_is_still_needed) {
  auto plant = slow_wake_ups();
  plant.run(1h, 0.0);
  EXPECT_TRUE(plant.engaged("wake"));
  EXPECT_GE(plant.engagements["wake"].size(), 6U);
  EXPECT_LE(plant.engagements["wake"].size(), 12U);
}

TEST(Controller, lets_go_of_what_is_needed_no_longer_at_the_first_check) {
  auto plant = slow_wake_ups();
  plant.run(20s, 0.0);
  ASSERT_TRUE(plant.engaged("wake"));
  plant.extra = 0;
  plant.run(60s, 0.0);
  EXPECT_FALSE(plant.engaged("wake"));
  EXPECT_EQ(plant.changes, 2);
}

TEST(Controller, the_end_of_contention_is_no_reason_to_let_go_of_what_acts_without_rivals) {
  auto plant = slow_wake_ups();
  plant.run(10s, 0.9);
  ASSERT_TRUE(plant.engaged("weight"));
  ASSERT_TRUE(plant.engaged("wake"));
  plant.run(2s, 0.0);
  EXPECT_FALSE(plant.engaged("weight"));
  EXPECT_TRUE(plant.engaged("wake"));
}

TEST(Controller, learns_to_wait_for_rivals_that_come_and_go_beside_it) {
  auto plant = slow_wake_ups();
  plant.run(10s, 0.0);
  const auto before = plant.changes;
  for (int i = 0; i < 60; ++i) {
    plant.run(1s, 0.9);
    plant.run(1s, 0.0);
  }
  EXPECT_LE(plant.changes - before, 30);
}

TEST(Controller, of_a_process_that_rests_nothing_is_held_that_acts_without_rivals) {
  auto plant = slow_wake_ups();
  plant.run(10s, 0.0);
  plant.working = false;
  plant.run(1200ms, 0.0);
  EXPECT_TRUE(plant.last.engaged.empty());
}

TEST(Controller,
     contention_that_ends_in_the_middle_of_a_reversal_does_not_count_failures_below_none) {
  auto own = lever("own", 0);
  own.rung.needs_rival = false;
  Plant plant({lever("weight", 0.9), own});
  plant.extra = 3;  // it stays off its target
  const auto until = [&](const auto& so, double rival) {
    for (int i = 0; i < 1000 && !so(); ++i) plant.run(kTick, rival);
  };
  until([&] { return plant.count(What::tried, "own") == 1; }, 0.9);
  plant.extra = 6;  // worse with it, and worse still without: the load grew
  until([&] { return plant.count(What::undone, "own") == 1; }, 0);
  plant.extra = 10;
  until([&] { return plant.count(What::inconclusive, "own") == 1; }, 0);
  ASSERT_EQ(plant.count(What::inconclusive, "own"), 1U);
  ASSERT_EQ(plant.count(What::released, "weight"), 1U);
  until([&] { return plant.count(What::undone, "own") == 2; }, 0);
  ASSERT_EQ(plant.count(What::undone, "own"), 2U);
  plant.run(20s, 0);
  EXPECT_EQ(plant.count(What::tried, "own"), 2U);
}

}  // namespace
}  // namespace apusched::core
