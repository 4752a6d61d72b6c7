// SPDX-License-Identifier: MIT
// Where observations scatter and a lever is dear: sure rather than quick.
#include "plant.hpp"

namespace apusched::core {
namespace {

constexpr double kLoad = 0.5;

ControlSettings sure_settings(double sure_gain) {
  auto settings = Plant::with_target();
  settings.compared = 10;
  settings.min_superiority = 0.8;
  settings.sure_gain = sure_gain;
  return settings;
}

/// How often of a hundred times a lever is kept that takes that share away, where observations
/// scatter by half of what they are, which is twice the target.
std::size_t kept_of_100(double takes, ControlSettings settings) {
  std::size_t kept = 0;
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    settings.target = 5;
    Plant plant({lever("share", takes)}, settings);
    plant.noise = 0.5;
    plant.seed(seed);
    plant.run(20s, kLoad);
    if (plant.count(What::kept, "share") > 0) ++kept;
  }
  return kept;
}

/// Observations that hardly scatter.
Plant calm(double takes) {
  Plant plant({lever("share", takes)}, sure_settings(0.5));
  plant.noise = 0.05;
  return plant;
}

/// Until something is in force, or was just let go again.
void run_to_change(Plant& plant, double rival) {
  const int before = plant.changes;
  for (int i = 0; i < 1000 && plant.changes == before; ++i) plant.run(kTick, rival);
}
/// Until the first of these is told of the rung.
void run_to(Plant& plant, What what, const std::string& rung) {
  for (int i = 0; i < 1000 && plant.count(what, rung) == 0; ++i) plant.run(kTick, kLoad);
}

TEST(SureController, is_not_taken_in_by_chance) {
  EXPECT_GT(kept_of_100(0, Plant::with_target()), 30U);
  EXPECT_LE(kept_of_100(0, sure_settings(0)), 5U);
  EXPECT_LE(kept_of_100(0, sure_settings(0.5)), 1U);
}

TEST(SureController, keeps_what_does_help) {
  EXPECT_GE(kept_of_100(0.7, sure_settings(0)), 90U);
  EXPECT_GE(kept_of_100(0.7, sure_settings(0.5)), 90U);
}

TEST(SureController, keeps_a_small_gain_once_it_is_gone_without_the_lever) {
  auto plant = calm(0.3);
  plant.run(20s, kLoad);
  EXPECT_TRUE(plant.engaged("share"));
  EXPECT_EQ(plant.engagements["share"].size(), 2U);
  EXPECT_EQ(plant.count(What::tried, "share"), 1U);
  EXPECT_EQ(plant.count(What::kept, "share"), 1U);
}

TEST(SureController, does_not_ask_twice_where_the_gain_is_large) {
  auto plant = calm(0.9);
  plant.run(20s, kLoad);
  EXPECT_TRUE(plant.engaged("share"));
  EXPECT_EQ(plant.engagements["share"].size(), 1U);
}

TEST(SureController, gives_no_credit_for_a_load_that_shrank_and_stays_so) {
  auto plant = calm(0);
  run_to_change(plant, kLoad);
  plant.run(10s, kLoad * 0.6);
  EXPECT_EQ(plant.count(What::kept, "share"), 0U);
  EXPECT_EQ(plant.count(What::undone, "share"), 1U);
  EXPECT_EQ(plant.engagements["share"].size(), 1U);
}

TEST(SureController, does_not_blame_a_lever_for_a_load_that_ended_while_it_was_let_go) {
  auto plant = calm(0.3);
  run_to_change(plant, kLoad);  // with it
  run_to_change(plant, kLoad);  // without
  plant.run(3s, 0.01);
  EXPECT_EQ(plant.count(What::inconclusive, "share"), 1U);
  plant.run(5s, kLoad);  // no half minute later
  EXPECT_TRUE(plant.engaged("share"));
}

TEST(SureController, lets_go_for_good_of_what_cannot_act_any_more_while_it_is_let_go) {
  auto plant = calm(0.3);
  run_to_change(plant, kLoad);
  run_to_change(plant, kLoad);
  plant.lever("share").rung.available = false;
  plant.lever("share").rung.why_not = "the agent is gone";
  plant.run(10s, kLoad);
  EXPECT_EQ(plant.engagements["share"].size(), 1U);
  EXPECT_EQ(plant.last.state, ControlState::saturated);
}

TEST(SureController, is_not_hurried_by_what_is_seen_before_a_lever_has_settled) {
  auto slow = lever("share", 0.3);
  slow.rung.settle = 1s;
  Plant plant({slow, lever("gate", 0)}, sure_settings(0.5));
  plant.noise = 0.05;
  run_to(plant, What::kept, "share");
  const auto kept = plant.now();
  run_to(plant, What::tried, "gate");
  EXPECT_EQ(plant.count(What::tried, "gate"), 1U);
  EXPECT_GE(plant.now() - kept, 1s + 10 * kTick);
}

}  // namespace
}  // namespace apusched::core
