// SPDX-License-Identifier: MIT
// The controller against simulated machines, on a clock of their own.
#include "plant.hpp"

namespace apusched::core {
namespace {

TEST(Controller, does_nothing_where_the_target_is_met) {
  Plant plant({lever("weight")});
  plant.run(10s, 0.02);
  EXPECT_EQ(plant.last.state, ControlState::meeting);
  EXPECT_EQ(plant.changes, 0);
}

TEST(Controller, notices_a_step_load_within_300_ms_and_is_back_on_target_within_a_second) {
  Plant plant({lever("weight")});
  plant.run(5s, 0);
  const auto began = plant.now();
  plant.run(300ms, 0.9);
  EXPECT_TRUE(plant.engaged("weight"));
  plant.run(700ms, 0.9);
  EXPECT_LE(plant.observe(0.9), kTarget);
  ASSERT_EQ(plant.engagements["weight"].size(), 1U);
  EXPECT_LT(plant.engagements["weight"].front() - began, 300ms);
}

TEST(Controller, keeps_what_helped_as_long_as_contention_lasts_and_changes_nothing_more) {
  Plant plant({lever("weight"), lever("level")});
  plant.run(60s, 0.9);
  EXPECT_TRUE(plant.engaged("weight"));
  EXPECT_FALSE(plant.engaged("level"));
  EXPECT_EQ(plant.changes, 1);
  EXPECT_EQ(plant.last.state, ControlState::meeting);
}

TEST(Controller, lets_go_within_a_second_after_contention_has_ended) {
  Plant plant({lever("weight")});
  plant.run(10s, 0.9);
  ASSERT_TRUE(plant.engaged("weight"));
  plant.run(1s, 0.01);
  EXPECT_FALSE(plant.engaged("weight"));
}

TEST(Controller, does_not_take_a_lever_that_hides_contention_for_its_end) {
  Plant plant({lever("weight", 1.0)});
  plant.run(300s, 0.9);
  EXPECT_TRUE(plant.engaged("weight"));
  EXPECT_EQ(plant.changes, 1);
}

TEST(Controller, compares_with_what_it_was_since_contention_began) {
  Plant plant({lever("weight", 0.3)});
  plant.run(5s, 0);
  plant.run(2s, 0.5);
  EXPECT_EQ(plant.count(What::undone), 0U);
  EXPECT_EQ(plant.count(What::kept, "weight"), 1U);
}

TEST(Controller, climbs_until_the_target_is_met) {
  Plant plant({lever("weight", 0.7), lever("priority", 0.7), lever("mask", 0.9)});
  plant.run(10s, 0.9);
  EXPECT_TRUE(plant.engaged("weight"));
  EXPECT_TRUE(plant.engaged("priority"));
  EXPECT_TRUE(plant.engaged("mask"));
  EXPECT_EQ(plant.last.state, ControlState::meeting);
}

TEST(Controller, does_not_judge_a_lever_before_it_is_in_force) {
  Controller controller(Plant::with_target());
  Moment asked{0};
  std::vector<What> said;
  for (Moment now{0}; now < 5s; now += kTick) {
    const bool written = asked != Moment{0} && now - asked >= 1500ms;
    auto rung = lever("weight").rung;
    rung.being_written = asked != Moment{0} && !written;
    const auto output = controller.step({now, true, written ? 0.1 : 5.0, 0.9, {rung}});
    if (asked == Moment{0} && !output.engaged.empty()) asked = now;
    for (const auto& event : output.events) said.push_back(event.what);
  }
  EXPECT_NE(std::ranges::find(said, What::kept), said.end());
  EXPECT_EQ(std::ranges::find(said, What::undone), said.end());
}

TEST(Controller, undoes_a_lever_without_effect_and_does_not_try_it_again_soon) {
  Plant plant({lever("placebo", 0.0), lever("weight")});
  plant.run(25s, 0.9);
  EXPECT_EQ(plant.count(What::undone, "placebo"), 1U);
  EXPECT_FALSE(plant.engaged("placebo"));
  EXPECT_TRUE(plant.engaged("weight"));
  EXPECT_EQ(plant.engagements["placebo"].size(), 1U);
}

TEST(Controller, undoes_a_lever_that_makes_it_worse) {
  Plant plant({lever("harm", -0.5)});
  plant.run(5s, 0.9);
  EXPECT_FALSE(plant.engaged("harm"));
  EXPECT_EQ(plant.count(What::undone, "harm"), 1U);
  EXPECT_EQ(plant.last.state, ControlState::saturated);
}

TEST(Controller, tries_again_what_did_not_help_after_its_time) {
  Plant plant({lever("placebo", 0.0)});
  plant.run(100s, 0.9);
  EXPECT_GE(plant.engagements["placebo"].size(), 2U);
  EXPECT_LE(plant.engagements["placebo"].size(), 4U);
}

TEST(Controller, tries_ever_more_rarely_what_never_helps) {
  Plant plant({lever("placebo", 0.0)});
  plant.run(3600s, 0.9);
  const auto& times = plant.engagements["placebo"];
  ASSERT_GE(times.size(), 8U);
  EXPECT_LE(times.size(), 14U);
  const auto last = times.back() - times[times.size() - 2];
  EXPECT_GE(last, 480s);
  EXPECT_LE(last, 490s);
}

TEST(Controller, tries_again_soon_what_did_not_help_once_contention_was_over) {
  Plant plant({lever("placebo", 0.0), lever("weight", 0.9)});
  plant.run(600s, 0.9);
  const auto before = plant.engagements["placebo"].size();
  plant.run(60s, 0.0);
  plant.run(100s, 0.9);
  EXPECT_GE(plant.engagements["placebo"].size(), before + 2);
}

TEST(Controller, gives_no_credit_to_a_lever_for_a_load_that_ended) {
  Plant plant({lever("placebo", 0.0)});
  plant.run(5s, 0);
  while (!plant.engaged("placebo")) plant.tick(0.9);
  plant.run(2s, 0.2);
  EXPECT_EQ(plant.count(What::kept), 0U);
  EXPECT_EQ(plant.count(What::inconclusive, "placebo"), 1U);
  plant.run(2s, 0.0);
  EXPECT_EQ(plant.count(What::kept), 0U);
  EXPECT_FALSE(plant.engaged("placebo"));
}

TEST(Controller, does_not_blame_a_good_lever_for_a_load_that_grew) {
  Plant plant({lever("weight", 0.6)});
  plant.run(5s, 0);
  while (!plant.engaged("weight")) plant.tick(0.2);
  plant.run(1500ms, 0.9);  // more than twice as much: with the lever it is as bad as before
  EXPECT_EQ(plant.count(What::inconclusive, "weight"), 1U);
  plant.run(3s, 0.9);
  EXPECT_TRUE(plant.engaged("weight"));
}

TEST(Controller, remembers_what_helped_twice_and_tries_it_first) {
  Plant plant({lever("placebo", 0.0), lever("weight")});
  for (int i = 0; i < 2; ++i) {
    plant.run(20s, 0.9);
    plant.run(90s, 0);
  }
  EXPECT_EQ(plant.count(What::confirmed, "weight"), 1U);
  const auto tried = plant.engagements["placebo"].size();
  plant.run(5s, 0.9);
  EXPECT_TRUE(plant.engaged("weight"));
  EXPECT_EQ(plant.engagements["placebo"].size(), tried);
}

TEST(Controller, does_not_act_on_noise) {
  Plant plant({lever("weight")});
  plant.noise = 1.0;  // 1.1 % of 0.1 times that is above the target
  plant.run(600s, 0.02);
  EXPECT_LE(plant.changes, 2);
}

TEST(Controller, does_not_oscillate_with_a_load_that_comes_and_goes) {
  Plant plant({lever("weight")});
  for (int i = 0; i < 60; ++i) {
    plant.run(1s, 0.9);
    plant.run(1s, 0.0);
  }
  // It learns to wait: two minutes of it cost far fewer changes than the 120 edges.
  EXPECT_LE(plant.changes, 10);
}

TEST(Controller, follows_a_ramp) {
  Plant plant({lever("weight")});
  for (double rival = 0; rival < 0.9; rival += 0.01) plant.run(500ms, rival);
  EXPECT_TRUE(plant.engaged("weight"));
  EXPECT_EQ(plant.changes, 1);
}

TEST(Controller, holds_when_nothing_is_observed_and_lets_go_after_a_while) {
  Plant plant({lever("weight")});
  plant.run(5s, 0.9);
  plant.observed = false;
  plant.run(2s, 0.9);
  EXPECT_EQ(plant.last.state, ControlState::failsafe);
  EXPECT_TRUE(plant.engaged("weight"));
  plant.run(5s, 0.9);
  EXPECT_FALSE(plant.engaged("weight"));
  plant.observed = true;
  plant.run(2s, 0.9);
  EXPECT_TRUE(plant.engaged("weight"));
}

TEST(Controller, an_observation_that_never_changes_with_any_lever_ends_in_nothing_held) {
  Plant plant({lever("weight", 0.0), lever("priority", 0.0), lever("mask", 0.0)});
  plant.extra = 50;  // a probe that lies
  plant.run(20s, 0.9);
  EXPECT_TRUE(plant.last.engaged.empty());
  EXPECT_EQ(plant.last.state, ControlState::saturated);
}

TEST(Controller, lets_go_at_once_when_the_process_is_idle) {
  Plant plant({lever("weight")});
  plant.run(5s, 0.9);
  plant.working = false;
  plant.run(1200ms, 0.9);
  EXPECT_TRUE(plant.last.engaged.empty());
  EXPECT_EQ(plant.last.state, ControlState::idle);
}

TEST(Controller, says_why_nothing_is_left) {
  auto mask = lever("mask");
  mask.rung.available = false;
  mask.rung.why_not = "no agent in process 42";
  Plant plant({mask});
  plant.run(2s, 0.9);
  ASSERT_EQ(plant.last.state, ControlState::saturated);
  const auto said = std::ranges::find_if(
      plant.events, [](const auto& entry) { return entry.second.text.starts_with("saturated"); });
  ASSERT_NE(said, plant.events.end());
  EXPECT_EQ(said->second.text, "saturated: mask cannot act: no agent in process 42");
}

TEST(Controller, drops_a_rung_at_once_when_it_must_not_act_any_more) {
  Plant plant({lever("weight", 0.5), lever("level", 0.99)});
  plant.run(10s, 0.9);
  ASSERT_TRUE(plant.engaged("level"));
  plant.lever("level").rung.available = false;
  plant.lever("level").rung.why_not = "the GPU is at its temperature limit";
  plant.tick(0.9);
  EXPECT_FALSE(plant.engaged("level"));
  EXPECT_TRUE(plant.engaged("weight"));
}

TEST(Controller, a_rung_that_needs_rivals_is_not_tried_without_them) {
  auto level = lever("level", 0.0);
  level.rung.needs_rival = false;
  Plant plant({lever("weight"), level});
  plant.extra = 5;
  plant.run(5s, 0.0);
  EXPECT_EQ(plant.engagements["weight"].size(), 0U);
  EXPECT_EQ(plant.engagements["level"].size(), 1U);
}

TEST(Controller, what_brings_least_per_watt_goes_first) {
  auto dear = lever("level", 0.5);
  dear.rung.watts = 20;
  Plant plant({dear, lever("weight", 0.95)});
  plant.run(10s, 0.9);
  ASSERT_EQ(plant.last.engaged.size(), 2U);
  plant.run(2s, 0.0);
  std::vector<std::string> released;
  for (const auto& [at, event] : plant.events)
    if (event.what == What::released) released.push_back(event.rung);
  EXPECT_EQ(released, (std::vector<std::string>{"level", "weight"}));
}

TEST(Controller, decides_the_same_on_the_same_inputs) {
  Controller first(Plant::with_target());
  Controller second(Plant::with_target());
  std::mt19937 random(3);
  for (int i = 0; i < 5000; ++i) {
    const ControlInput input{i * kTick,
                             random() % 20 != 0,
                             static_cast<double>(random() % 300) / 100,
                             static_cast<double>(random() % 100) / 100,
                             {lever("weight").rung, lever("mask").rung}};
    EXPECT_EQ(first.step(input), second.step(input));
  }
}

/// Whatever happens: rungs that act are of the ladder, no rung is engaged more often than its
/// limit, and once nothing works any more nothing is held.
TEST(Controller, of_any_history_changes_no_rung_too_often_and_holds_nothing_at_the_end) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    auto settings = Plant::with_target();
    if (seed % 2 == 1) {
      settings.compared = 5;
      settings.min_superiority = 0.7;
      settings.sure_gain = 0.5;
    }
    Plant plant({lever("a", 0.3), lever("b", -0.4), lever("c", 0.9), lever("d", 0.0)}, settings);
    plant.noise = (seed % 5) * 0.3;
    for (int i = 0; i < 100; ++i) {
      plant.observed = random() % 10 != 0;
      plant.working = random() % 10 != 0;
      plant.lever("c").rung.available = random() % 5 != 0;
      plant.run((random() % 20) * kTick, static_cast<double>(random() % 100) / 100);
    }
    for (const auto& [name, times] : plant.engagements)
      for (std::size_t i = 1; i < times.size(); ++i)
        EXPECT_GE(times[i] - times[i - 1], Plant::with_target().change_interval) << name;
    plant.working = false;
    plant.run(2s, 0.5);
    EXPECT_TRUE(plant.last.engaged.empty()) << seed;
  }
}

constexpr double kGood = 0.5;
constexpr double kBad = 1.5;
constexpr double kVeryBad = 5;

ExceedanceTest after_a_good_past() {
  ExceedanceTest test;
  for (int i = 0; i < 1000; ++i) test.add(kGood, kTarget);
  return test;
}

TEST(ExceedanceTest, needs_three_in_a_row_after_a_good_past) {
  auto test = after_a_good_past();
  EXPECT_EQ(test.verdict(), ExceedanceTest::Verdict::meets);
  test.add(kBad, kTarget);
  test.add(kBad, kTarget);
  EXPECT_NE(test.verdict(), ExceedanceTest::Verdict::violates);
  test.add(kBad, kTarget);
  EXPECT_EQ(test.verdict(), ExceedanceTest::Verdict::violates);
}

TEST(ExceedanceTest, needs_two_that_exceed_by_far_even_with_a_good_one_between_them) {
  auto test = after_a_good_past();
  test.add(kVeryBad, kTarget);
  EXPECT_NE(test.verdict(), ExceedanceTest::Verdict::violates);
  test.add(kGood, kTarget);
  EXPECT_NE(test.verdict(), ExceedanceTest::Verdict::violates);
  test.add(kVeryBad, kTarget);
  EXPECT_EQ(test.verdict(), ExceedanceTest::Verdict::violates);
}

TEST(ExceedanceTest, knows_since_when_it_is_different) {
  auto test = after_a_good_past();
  EXPECT_EQ(test.since_change(), 0U);
  test.add(kBad, kTarget);
  test.add(kGood, kTarget);
  test.add(kBad, kTarget);
  EXPECT_EQ(test.since_change(), 3U);
  for (int i = 0; i < 10; ++i) test.add(kGood, kTarget);
  EXPECT_EQ(test.since_change(), 0U);
}

TEST(ExceedanceTest, does_not_know_at_first) {
  ExceedanceTest test;
  EXPECT_EQ(test.verdict(), ExceedanceTest::Verdict::undecided);
  for (int i = 0; i < 7; ++i) test.add(kGood, kTarget);
  EXPECT_EQ(test.verdict(), ExceedanceTest::Verdict::undecided);
  test.add(kGood, kTarget);
  EXPECT_EQ(test.verdict(), ExceedanceTest::Verdict::meets);
}

/// Of 100,000 observations.
int violations_seen(int bad_of_10000, double bad) {
  ExceedanceTest test;
  std::mt19937 random(5);
  int violations = 0;
  for (int i = 0; i < 100'000; ++i) {
    test.add(static_cast<int>(random() % 10'000) < bad_of_10000 ? bad : kGood, kTarget);
    if (test.verdict() != ExceedanceTest::Verdict::violates) continue;
    ++violations;
    test.restart();
  }
  return violations;
}

TEST(ExceedanceTest, rarely_takes_one_exceedance_in_twenty_for_a_violation) {
  EXPECT_LT(violations_seen(500, kBad), 60);
}

TEST(ExceedanceTest, rarely_takes_one_in_a_thousand_by_far_for_a_violation) {
  EXPECT_LT(violations_seen(10, kVeryBad), 10);
}

}  // namespace
}  // namespace apusched::core
