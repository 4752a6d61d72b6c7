// SPDX-License-Identifier: MIT
#include "gpu_control_fixture.hpp"

namespace apusched::app {
namespace {

TEST_F(GpuControlTest, makes_others_give_way_as_far_as_it_helps_and_lets_go_when_they_have_ended) {
  start();
  const auto first = engine(100);
  const auto second = engine(200);
  const auto id = added(100, "decode");
  added(200, "background");
  run(2s, first, second, false);
  EXPECT_EQ(state(id), "meeting");
  EXPECT_EQ(control(id)->target_us, 150);
  EXPECT_EQ(mask_of(second).count(), 12U);
  run(4s, first, second, true);
  EXPECT_EQ(state(id), "meeting");
  EXPECT_EQ(control(id)->engaged, std::vector<std::string>{"cu_share_25"});
  EXPECT_FALSE(mask_of(first).intersects(mask_of(second)));
  EXPECT_EQ(told(What::kept), 1);
  run(3s, first, second, false);
  EXPECT_EQ(mask_of(first).count(), 12U);
  EXPECT_EQ(mask_of(second).count(), 12U);
}

TEST_F(GpuControlTest, that_begins_in_the_midst_of_others_finds_out_what_helps) {
  start();
  const auto first = engine(100);
  const auto second = engine(200);
  added(200, "background");
  const auto id = added(100, "decode");
  run(20s, first, second, true);
  EXPECT_EQ(state(id), "meeting");
  EXPECT_NEAR(control(id)->target_us, 150, 1);  // what it reached, and half of that more
  EXPECT_FALSE(disturbs(second, first));
}

TEST_F(GpuControlTest, undoes_what_does_not_help_and_goes_on_to_what_does) {
  masks_act_ = false;
  start();
  const auto first = engine(100);
  const auto second = engine(200);
  const auto id = added(100, "decode");
  added(200, "background");
  run(2s, first, second, false);
  run(12s, first, second, true);
  EXPECT_EQ(state(id), "meeting");
  EXPECT_EQ(control(id)->engaged, std::vector<std::string>{"gate"});
  EXPECT_EQ(mask_of(second).count(), 12U);
  EXPECT_GT(agents_.agents.at(second).settings.gate_closed_until, loop_.now().time_since_epoch());
}

TEST_F(GpuControlTest, without_anything_that_helps_is_saturated_and_holds_nothing) {
  masks_act_ = gates_act_ = false;
  start();
  const auto first = engine(100);
  const auto second = engine(200);
  const auto id = added(100, "decode");
  added(200, "background");
  run(2s, first, second, false);
  run(20s, first, second, true);
  EXPECT_EQ(state(id), "saturated");
  EXPECT_TRUE(control(id)->engaged.empty());
  EXPECT_EQ(mask_of(second).count(), 12U);
}

TEST_F(GpuControlTest, a_release_gives_everything_back) {
  start();
  const auto first = engine(100);
  const auto second = engine(200);
  const auto id = added(100, "decode");
  added(200, "background");
  run(2s, first, second, false);
  run(4s, first, second, true);
  EXPECT_LT(mask_of(second).count(), 12U);
  remove(id);
  EXPECT_EQ(mask_of(second).count(), 12U);
  EXPECT_EQ(agents_.agents.at(first).settings, core::AgentSettings{});
}

TEST_F(GpuControlTest, an_agent_that_goes_ends_the_pressure_for_its_sake) {
  start();
  const auto first = engine(100);
  const auto second = engine(200);
  const auto id = added(100, "decode");
  added(200, "background");
  run(2s, first, second, false);
  run(4s, first, second, true);
  agents_.go(first);
  loop_.settle();
  EXPECT_EQ(mask_of(second).count(), 12U);
  EXPECT_EQ(state(id), "none");
}

TEST_F(GpuControlTest, an_idle_process_asks_nothing_of_others) {
  start();
  const auto first = engine(100);
  const auto second = engine(200);
  const auto id = added(100, "decode");
  added(200, "background");
  run(2s, first, second, false);
  run(4s, first, second, true);
  EXPECT_LT(mask_of(second).count(), 12U);
  run(6s, first, second, true, false);
  EXPECT_EQ(state(id), "idle");
  EXPECT_EQ(mask_of(second).count(), 12U);
}

TEST_F(GpuControlTest, is_not_there_without_a_target_or_without_control) {
  config_.control.enabled = false;
  start();
  engine(100);
  const auto id = added(100, "decode");
  scan();
  EXPECT_EQ(state(id), "none");
}

/// One that starts beside one of a lower class that nobody measures.
class GpuControlBesideTest : public GpuControlTest {
 protected:
  /// `ran`: the other one's threads, between two scans.
  core::RegistrationId beside(std::chrono::nanoseconds ran) {
    start();
    world_.add(200).per_look = static_cast<std::uint64_t>(ran.count());
    topology_.queues.insert(200);
    added(200, "background");
    loop_.advance(config_.limits.scan_interval);
    loop_.advance(config_.limits.scan_interval);
    const auto self = engine(100);
    const auto id = added(100, "decode");
    for (auto left = 1500ms; left > 0ms; left -= config_.control.tick) {
      dispatch(self, 100us);
      loop_.advance(config_.control.tick);
      loop_.settle();
    }
    return id;
  }
  /// As for all that follows who works (registration.hpp).
  std::chrono::nanoseconds most_of_idle() const {
    return std::chrono::nanoseconds(config_.limits.scan_interval) / 1000;
  }
};

TEST_F(GpuControlBesideTest, one_that_works_is_in_its_way) {
  const auto id = beside(most_of_idle() + 1us);
  EXPECT_EQ(state(id), "violating");
  EXPECT_EQ(control(id)->target_us, 0);
}

TEST_F(GpuControlBesideTest, one_that_rests_is_not) {
  const auto id = beside(most_of_idle());
  EXPECT_EQ(state(id), "meeting");
  EXPECT_EQ(control(id)->target_us, 150);
}

TEST_F(GpuControlTest, a_process_of_a_higher_class_never_gives_way) {
  config_.profiles["modest"] = config_.profiles["decode"];
  config_.profiles["modest"].name = "modest";
  config_.profiles["modest"].work_class = core::WorkClass::batch;
  start();
  const auto first = engine(100);
  const auto second = engine(200);
  const auto modest = added(100, "modest");
  added(200, "decode");
  run(20s, first, second, true);
  // What it holds for itself asks nothing of others.
  const auto asked = control(modest);
  ASSERT_TRUE(asked);
  for (const auto& rung : asked->engaged) EXPECT_EQ(rung, "timer_slack");
  EXPECT_EQ(agents_.agents.at(second).settings.gate_closed_until, 0ns);
}

}  // namespace
}  // namespace apusched::app
