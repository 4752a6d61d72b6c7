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
  bool held() { return idle_.in_force.has_value(); }
  /// `slow`: as long as nothing is held.
  void alone(std::chrono::milliseconds time, bool slow, bool works = true) {
    for (auto left = time; left > 0ms; left -= config_.control.tick) {
      dispatch(*agent_, works ? std::optional(slow && !held() ? 400us : 100us) : std::nullopt);
      loop_.advance(config_.control.tick);
      loop_.settle();
    }
  }

  std::optional<core::AgentId> agent_;
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
  start();
  const auto id = decode();
  alone(3s, false);
  alone(5s, true);
  EXPECT_FALSE(held());
  EXPECT_FALSE(lever(id, LeverKind::cpu_latency));
}

TEST_F(DispatchLeversTest, a_dry_run_holds_nothing) {
  start(true);
  const auto id = decode();
  alone(3s, false);
  alone(5s, true);
  EXPECT_EQ(idle_.asked, 0);
  EXPECT_EQ(outcome(id, LeverKind::cpu_latency), Outcome::dry_run);
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
