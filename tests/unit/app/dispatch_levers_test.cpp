// SPDX-License-Identifier: MIT
// What is held for a process itself while its packets wait too long.
#include "gpu_control_fixture.hpp"

namespace apusched::app {
namespace {

/// A process whose packets wait longer now and then though nobody is in the way, and not with the
/// lever that a test names.
class DispatchLeversTest : public GpuControlTest {
 protected:
  void SetUp() override {
    GpuControlTest::SetUp();
    idle_port_ = &idle_;
  }
  core::RegistrationId decode() {
    agent_ = engine(100);
    return added(100, "decode");
  }
  bool held() {
    return cure_ == LeverKind::cpu_latency ? idle_.in_force.has_value() : slack() == 1000;
  }
  std::int64_t slack(int tid = 100) { return world_.thread(tid)->slack; }
  /// `slow`: as long as nothing is held.
  void alone(std::chrono::milliseconds time, bool slow, bool works = true) {
    for (auto left = time; left > 0ms; left -= config_.control.tick) {
      dispatch(*agent_, works ? std::optional(slow && !held() ? 400us : 100us) : std::nullopt);
      loop_.advance(config_.control.tick);
      loop_.settle();
    }
  }

  std::optional<core::AgentId> agent_;
  LeverKind cure_ = LeverKind::cpu_latency;  ///< what packets wait for
};

TEST_F(DispatchLeversTest, idle_cpus_wake_up_sooner_while_that_is_what_packets_wait_for) {
  start();
  const auto id = decode();
  alone(3s, false);
  EXPECT_EQ(outcome(id, LeverKind::cpu_latency), Outcome::standby);
  alone(5s, true);
  EXPECT_EQ(idle_.in_force, 20U);
  EXPECT_EQ(outcome(id, LeverKind::cpu_latency), Outcome::applied);
  EXPECT_EQ(told(What::kept), 1);
  EXPECT_EQ(state(id), "meeting");
}

TEST_F(DispatchLeversTest, all_is_let_go_when_the_process_rests) {
  start();
  const auto id = decode();
  alone(3s, false);
  alone(5s, true);
  ASSERT_TRUE(held());
  alone(5s, true, false);
  EXPECT_FALSE(held());
  EXPECT_EQ(outcome(id, LeverKind::cpu_latency), Outcome::standby);
}

TEST_F(DispatchLeversTest, all_is_let_go_with_the_registration_and_with_the_agent) {
  start();
  const auto id = decode();
  alone(3s, false);
  alone(5s, true);
  ASSERT_TRUE(held());
  agents_.go(*agent_);
  loop_.settle();
  EXPECT_FALSE(held());
  remove(id);
  expect_clean();
}

TEST_F(DispatchLeversTest, nothing_is_held_on_a_machine_that_begins_to_save_power) {
  start();
  const auto id = decode();
  alone(3s, false);
  alone(5s, true);
  ASSERT_TRUE(held());
  power_.saves = true;
  alone(6s, true);
  EXPECT_FALSE(held());
  EXPECT_EQ(outcome(id, LeverKind::cpu_latency), Outcome::standby);
}

TEST_F(DispatchLeversTest, nothing_is_tried_where_the_configuration_says_never) {
  config_.control.cpu_latency.reset();
  config_.control.timer_slack.reset();
  start();
  const auto id = decode();
  alone(3s, false);
  alone(5s, true);
  EXPECT_EQ(idle_.asked, 0);
  EXPECT_EQ(slack(), 50000);
  EXPECT_FALSE(lever(id, LeverKind::cpu_latency));
  EXPECT_FALSE(lever(id, LeverKind::timer_slack));
}

TEST_F(DispatchLeversTest, a_dry_run_holds_nothing) {
  start(true);
  const auto id = decode();
  alone(3s, false);
  alone(5s, true);
  EXPECT_EQ(idle_.asked, 0);
  EXPECT_EQ(slack(), 50000);
  EXPECT_EQ(outcome(id, LeverKind::cpu_latency), Outcome::dry_run);
  EXPECT_EQ(outcome(id, LeverKind::timer_slack), Outcome::dry_run);
}

/// Timers that fire late are what packets wait for.
class TimerSlackTest : public DispatchLeversTest {
 protected:
  void SetUp() override {
    DispatchLeversTest::SetUp();
    config_.control.cpu_latency.reset();
    cure_ = LeverKind::timer_slack;
  }
  core::RegistrationId engaged() {
    start();
    const auto id = decode();
    world_.processes.at(100).threads[101] = {0, world_.next_start++};
    world_.thread(101)->slack = 7;
    alone(3s, false);
    EXPECT_EQ(slack(), 50000);
    alone(5s, true);
    EXPECT_EQ(slack(), 1000);
    EXPECT_EQ(slack(101), 1000);
    return id;
  }
};

TEST_F(TimerSlackTest, timers_of_every_thread_fire_on_time_and_each_gets_its_original_back) {
  const auto id = engaged();
  EXPECT_EQ(outcome(id, LeverKind::timer_slack), Outcome::applied);
  alone(5s, true, false);
  EXPECT_EQ(slack(), 50000);
  EXPECT_EQ(slack(101), 7);
  EXPECT_EQ(outcome(id, LeverKind::timer_slack), Outcome::standby);
  EXPECT_TRUE(std::ranges::none_of(store_.ledger.entries(), [](const auto& item) {
    return item.first.kind == LeverKind::timer_slack;
  }));
  alone(3s, false);
  alone(5s, true);
  EXPECT_EQ(slack(), 1000);
}

TEST_F(TimerSlackTest, originals_are_recorded_before_they_are_changed) {
  engaged();
  const auto put = std::ranges::find_if(
      world_.log, [](const auto& line) { return line.starts_with("put timer_slack"); });
  const auto write = std::ranges::find_if(
      world_.log, [](const auto& line) { return line.starts_with("write slack"); });
  ASSERT_NE(write, world_.log.end());
  EXPECT_LT(put, write);
}

TEST_F(TimerSlackTest, a_thread_born_meanwhile_gets_its_creators_original) {
  const auto id = engaged();
  world_.add_thread(100, 102, 0);
  alone(1s, true);
  remove(id);
  EXPECT_EQ(slack(102), 50000);
  expect_clean();
}

TEST_F(TimerSlackTest, a_child_born_meanwhile_is_put_back) {
  const auto id = engaged();
  world_.add(200).threads.at(200).slack = 1000;
  world_.processes.at(100).children = {200};
  alone(1s, true);
  EXPECT_EQ(slack(200), 50000);
  remove(id);
}

TEST_F(TimerSlackTest, what_somebody_else_set_since_is_theirs) {
  const auto id = engaged();
  world_.thread(100)->slack = 1234;
  remove(id);
  EXPECT_EQ(slack(), 1234);
  EXPECT_EQ(slack(101), 7);
}

TEST_F(TimerSlackTest, a_real_time_thread_is_left_alone) {
  start();
  const auto id = decode();
  world_.processes.at(100).threads[101] = {0, world_.next_start++};
  world_.thread(101)->slack = 0;
  alone(3s, false);
  alone(5s, true);
  EXPECT_EQ(slack(), 1000);
  EXPECT_EQ(slack(101), 0);
  remove(id);
  EXPECT_EQ(slack(101), 0);
}

TEST_F(TimerSlackTest, the_next_start_restores_it) {
  engaged();
  crash();
  start();
  EXPECT_EQ(slack(), 50000);
  EXPECT_EQ(slack(101), 7);
  expect_clean();
}

TEST_F(TimerSlackTest, a_refusal_is_told_and_nothing_is_left) {
  start();
  const auto id = decode();
  alone(3s, false);
  world_.thread(100)->refuses = true;
  alone(5s, true);
  EXPECT_EQ(slack(), 50000);
  EXPECT_EQ(outcome(id, LeverKind::timer_slack), Outcome::denied);
  remove(id);
  expect_clean();
}

TEST_F(TimerSlackTest, what_was_refused_is_tried_again_after_a_while) {
  start();
  const auto id = decode();
  alone(3s, false);
  world_.thread(100)->refuses = true;
  alone(5s, true);
  ASSERT_EQ(outcome(id, LeverKind::timer_slack), Outcome::denied);
  world_.thread(100)->refuses = false;
  alone(5s, false);
  EXPECT_EQ(outcome(id, LeverKind::timer_slack), Outcome::denied);
  alone(config_.control.retry_after, false);
  EXPECT_EQ(outcome(id, LeverKind::timer_slack), Outcome::standby);
  alone(5s, true);
  EXPECT_EQ(slack(), 1000);
  EXPECT_EQ(outcome(id, LeverKind::timer_slack), Outcome::applied);
  remove(id);
  expect_clean();
}

TEST_F(TimerSlackTest, what_is_refused_again_is_told_again) {
  start();
  const auto id = decode();
  alone(3s, false);
  world_.thread(100)->refuses = true;
  alone(5s, true);
  alone(config_.control.retry_after, false);
  ASSERT_EQ(outcome(id, LeverKind::timer_slack), Outcome::standby);
  alone(5s, true);
  EXPECT_EQ(outcome(id, LeverKind::timer_slack), Outcome::denied);
}

TEST_F(TimerSlackTest, nothing_is_written_where_the_original_cannot_be_recorded) {
  start();
  decode();
  alone(3s, false);
  store_.fails = true;
  alone(5s, true);
  EXPECT_EQ(slack(), 50000);
}

TEST_F(DispatchLeversTest, a_new_model_with_longer_waits_becomes_the_yardstick) {
  idle_.state = ports::IdleState{"C1", 1us};
  start();
  const auto id = decode();
  alone(3s, false);
  alone(10s, true);
  EXPECT_EQ(state(id), "meeting");
  EXPECT_EQ(control(id)->target_us, 600);
}

}  // namespace
}  // namespace apusched::app
