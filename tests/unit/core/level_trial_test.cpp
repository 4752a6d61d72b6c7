// SPDX-License-Identifier: MIT
#include "core/level_trial.hpp"

#include <gtest/gtest.h>

#include <random>

namespace apusched::core {
namespace {

using namespace std::chrono_literals;

/// A GPU whose dispatches take 20 µs at the high level and `slower` times that without.
class LevelTrialTest : public ::testing::Test {
 protected:
  LevelTrial::Output run(Moment time) {
    LevelTrial::Output output;
    for (const auto end = input.now + time; input.now < end; input.now += 500ms) {
      const double spread = std::lognormal_distribution<>(0, noise)(random_);
      if (timed) input.latency_us = (held ? 20 : 20 * slower) * spread;
      input.watts = held ? 10 + watts : 10;
      output = trial_->step(input);
      changes += output.hold != held ? 1 : 0;
      held = output.hold;
      if (!output.event.empty()) events.push_back(output.event);
    }
    return output;
  }
  void restart() { trial_.emplace(settings); }

  LevelSettings settings;
  LevelInput input{10s, true, {}, {}, {}, false};
  std::optional<LevelTrial> trial_{settings};
  std::mt19937 random_{3};
  double slower = 1, watts = 5, noise = 0.05;
  bool held = true, timed = true;
  int changes = 0;
  std::vector<std::string> events;
};

TEST_F(LevelTrialTest, a_level_that_makes_dispatches_faster_stays) {
  slower = 1.5;
  run(60s);
  EXPECT_TRUE(held);
  EXPECT_EQ(events, std::vector<std::string>{"the level pays"});
}

TEST_F(LevelTrialTest, a_level_that_does_nothing_is_let_go_and_stays_off) {
  const auto last = run(100s);
  EXPECT_FALSE(last.hold);
  EXPECT_FALSE(last.why.empty());
  EXPECT_EQ(events.front(), "the level does not pay");
}

TEST_F(LevelTrialTest, a_level_that_costs_more_watts_than_it_gains_is_let_go) {
  slower = 1.2;
  watts = 25;
  run(50s);
  EXPECT_FALSE(held);
  watts = 2;
  restart();
  run(50s);
  EXPECT_TRUE(held);
}

TEST_F(LevelTrialTest, comparisons_become_rarer_while_the_answer_stays_the_same) {
  slower = 1.5;
  run(3600s);
  EXPECT_LE(events.size(), 12U);
  EXPECT_TRUE(held);
}

TEST_F(LevelTrialTest, a_level_that_begins_to_pay_is_found_again) {
  run(100s);
  EXPECT_FALSE(held);
  slower = 2;
  run(300s);
  EXPECT_TRUE(held);
}

TEST_F(LevelTrialTest, an_idle_gpu_gets_its_level_back_at_once_and_work_the_high_one) {
  input.working = false;
  const auto idle = run(3s);
  EXPECT_FALSE(idle.hold);
  EXPECT_EQ(idle.why, "nothing works on the GPU");
  input.working = true;
  run(500ms);
  EXPECT_TRUE(held);
}

TEST_F(LevelTrialTest, work_that_comes_and_goes_is_no_comparison) {
  slower = 1.5;
  for (int i = 0; i < 60; ++i) {
    input.working = i % 2 == 0;
    run(5s);
  }
  EXPECT_TRUE(events.empty());
}

TEST_F(LevelTrialTest, heat_takes_the_level_away_until_it_has_cooled_down) {
  settings.max_celsius = 90;
  restart();
  input.celsius = 90;
  EXPECT_EQ(run(1s).why, "the GPU is too hot");
  input.celsius = 86;
  run(5s);
  EXPECT_FALSE(held);
  input.celsius = 84;
  run(1s);
  EXPECT_TRUE(held);
}

TEST_F(LevelTrialTest, a_machine_that_saves_power_has_no_high_level_unless_told_otherwise) {
  input.saving = true;
  run(1s);
  EXPECT_FALSE(held);
  settings.on_battery = true;
  restart();
  run(1s);
  EXPECT_TRUE(held);
}

TEST_F(LevelTrialTest, without_timed_dispatches_or_with_checks_off_it_is_held) {
  timed = false;
  run(600s);
  EXPECT_TRUE(held);
  timed = true;
  settings.check_after = 0ms;
  restart();
  run(600s);
  EXPECT_TRUE(held);
  EXPECT_EQ(changes, 0);
}

TEST_F(LevelTrialTest, noise_alone_hardly_ever_makes_a_level_pay) {
  int pays = 0;
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    random_.seed(seed);
    noise = 0.5;
    restart();
    events.clear();
    held = true;
    run(50s);
    pays += !events.empty() && events.front() == "the level pays" ? 1 : 0;
  }
  EXPECT_LE(pays, 5);
}

}  // namespace
}  // namespace apusched::core
