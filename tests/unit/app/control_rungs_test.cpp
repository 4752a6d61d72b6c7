// SPDX-License-Identifier: MIT
#include <algorithm>

#include "control_fixture.hpp"

namespace apusched::app {
namespace {

TEST_F(ControlLoopTest, a_rival_in_its_own_session_is_met_with_nice_first) {
  world_.add(50, {5, 3});
  rival(60);
  start();
  const auto id = engine(50);
  run(2s, 6us, 0.0);
  EXPECT_EQ(world_.nices(50), (std::vector{-10, -10}));
  contend(500ms, 2ms);
  EXPECT_EQ(world_.nices(50), (std::vector{-20, -20}));
  EXPECT_EQ(autogroup(), -10);
  EXPECT_EQ(lever(id, LeverKind::nice)->value, "-20");
  run(2s, 6us, 0.9);
  EXPECT_TRUE(told(What::kept));
  scan();
  EXPECT_EQ(world_.nices(50), (std::vector{-20, -20}));
  run(2s, 6us, 0.0);
  EXPECT_EQ(world_.nices(50), (std::vector{-10, -10}));
  remove(id);
  EXPECT_EQ(world_.nices(50), (std::vector{5, 3}));
  expect_clean();
}

TEST_F(ControlLoopTest, a_neighbour_that_sleeps_is_no_rival) {
  rival(60);
  start();
  engine(50);
  run(500ms, 2ms, 0.9);
  EXPECT_EQ(world_.nices(50), (std::vector{-10}));
  EXPECT_EQ(autogroup(), -20);
}

TEST_F(ControlLoopTest, looks_for_neighbours_only_while_the_target_is_missed_and_not_often) {
  start();
  engine(50);
  run(5s, 6us, 0.9);
  EXPECT_EQ(world_.groups_listed, 0);
  run(5s, 2ms, 0.9);
  EXPECT_GT(world_.groups_listed, 0);
  EXPECT_LE(world_.groups_listed, 4);
}

TEST_F(ControlLoopTest, a_thread_born_while_nice_is_strong_gets_its_creators_original) {
  world_.add(50, {5});
  rival(60);
  start();
  const auto id = engine(50);
  contend(500ms, 2ms);
  world_.add_thread(50, 51, -20);
  world_.add_thread(50, 52, -10);  // cloned before, listed after
  scan();
  EXPECT_EQ(world_.nices(50), (std::vector{-20, -20, -20}));
  remove(id);
  EXPECT_EQ(world_.nices(50), (std::vector{5, 5, 5}));
}

TEST_F(ControlLoopTest, a_thread_that_somebody_reniced_is_left_to_them_by_the_strong_nice_too) {
  world_.add(50, {0, 0});
  rival(60);
  start();
  const auto id = engine(50);
  world_.thread(51)->nice = 7;
  contend(500ms, 2ms);
  EXPECT_EQ(world_.nices(50), (std::vector{-20, 7}));
  world_.thread(50)->nice = -10;  // by hand: not what was written last
  scan();
  remove(id);
  EXPECT_EQ(world_.nices(50), (std::vector{-10, 7}));
}

TEST_F(ControlLoopTest, a_thread_that_refuses_the_strong_nice_gets_its_original_back) {
  world_.add(50, {5});
  rival(60);
  start();
  const auto id = engine(50);
  world_.thread(50)->refuses = true;
  contend(500ms, 2ms);
  run(6s, 2ms, 0.9);
  EXPECT_EQ(std::ranges::count_if(report_.events,
                                  [](const core::ControlEvent& event) {
                                    return event.what == What::tried && event.rung == "nice";
                                  }),
            1);
  EXPECT_EQ(outcome(id, LeverKind::nice), Outcome::applied);
  EXPECT_NE(service_->view(id)->control->why.find("nice cannot act: set nice"), std::string::npos)
      << service_->view(id)->control->why;
  world_.thread(50)->refuses = false;
  remove(id);
  EXPECT_EQ(world_.nices(50), (std::vector{5}));
  expect_clean();
}

TEST_F(ControlLoopTest, a_strong_nice_that_was_refused_is_tried_again_after_a_while) {
  world_.add(50, {5});
  rival(60);
  start();
  engine(50);
  world_.thread(50)->refuses = true;
  contend(500ms, 2ms);
  run(6s, 2ms, 0.9);
  world_.thread(50)->refuses = false;
  run(2s, 2ms, 0.9);
  EXPECT_EQ(world_.nices(50), (std::vector{-10}));
  for (auto left = config_.control.retry_after; left > 0ms && world_.nices(50).front() != -20;
       left -= config_.control.tick)
    run(config_.control.tick, 2ms, 0.9);
  EXPECT_EQ(world_.nices(50), (std::vector{-20}));
}

TEST_F(ControlLoopTest, the_next_start_restores_the_original_of_a_strong_nice) {
  world_.add(50, {5});
  rival(60);
  start();
  engine(50);
  contend(500ms, 2ms);
  ASSERT_EQ(world_.nices(50), (std::vector{-20}));
  world_.add_thread(50, 51, -20);
  world_.add_thread(50, 52, -10);
  crash();
  start();
  EXPECT_EQ(world_.nices(50), (std::vector{5, 5, 5}));
  expect_clean();
}

class SlicesTest : public ControlLoopTest {
 protected:
  /// Nothing but the slices helps: the rival is in another one.
  core::RegistrationId contended() {
    start();
    const auto id = engine(50);
    run(4s, 2ms, 0.9);
    return id;
  }
  int weight(const std::string& slice) {
    return units_.slices[slice].is_set() ? static_cast<int>(units_.slices[slice].effective()) : 0;
  }
};

TEST_F(SlicesTest, are_raised_after_the_unit_and_go_back_with_their_drop_ins) {
  start();
  const auto id = engine(50);
  run(1s, 2ms, 0.9);
  EXPECT_EQ(weight("apu-left.slice"), 0);
  for (int i = 0; i < 50 && weight("apu-left.slice") == 0; ++i) run(100ms, 2ms, 0.9);
  EXPECT_EQ(weight("apu-left.slice"), 10000);
  EXPECT_EQ(weight("apu.slice"), 10000);
  EXPECT_EQ(lever(id, LeverKind::slice_weight)->outcome, Outcome::applied);
  EXPECT_EQ(lever(id, LeverKind::slice_weight)->target, "apu-left.slice, apu.slice");
  run(2s, 6us, 0.9);
  EXPECT_EQ(state(id), "meeting");
  remove(id);
  EXPECT_EQ(weight("apu-left.slice"), 0);
  EXPECT_EQ(weight("apu.slice"), 0);
  EXPECT_TRUE(units_.drop_ins.empty());
  expect_clean();
}

TEST_F(SlicesTest, that_another_unit_shares_are_left_alone_and_the_knob_is_named) {
  world_.occupied = {{"/apu.slice/apu-left.slice", "other.service"}, {"/apu.slice", "b.service"}};
  const auto id = contended();
  EXPECT_TRUE(units_.slices.empty());
  EXPECT_EQ(outcome(id, LeverKind::slice_weight), Outcome::unsupported);
  EXPECT_EQ(lever(id, LeverKind::slice_weight)->detail,
            "apu-left.slice also has other.service; control.raise_slices: always raises it all "
            "the same");
}

TEST_F(SlicesTest, of_which_some_are_shared_are_raised_as_far_as_they_are_not) {
  world_.occupied = {{"/apu.slice", "b.service"}};
  start();
  engine(50);
  for (int i = 0; i < 50 && weight("apu-left.slice") == 0; ++i) run(100ms, 2ms, 0.9);
  EXPECT_EQ(weight("apu-left.slice"), 10000);
  EXPECT_EQ(weight("apu.slice"), 0);
}

TEST_F(SlicesTest, go_back_when_another_unit_comes_in) {
  start();
  const auto id = engine(50);
  for (int i = 0; i < 50 && weight("apu.slice") == 0; ++i) run(100ms, 2ms, 0.9);
  world_.occupied = {{"/apu.slice", "b.service"}};
  run(200ms, 6us, 0.9);
  EXPECT_EQ(weight("apu.slice"), 0);
  EXPECT_EQ(weight("apu-left.slice"), 10000);
  remove(id);
  expect_clean();
}

TEST_F(SlicesTest, are_never_raised_where_that_is_configured) {
  config_.control.raise_slices = core::RaiseSlices::never;
  const auto id = contended();
  EXPECT_TRUE(units_.slices.empty());
  EXPECT_EQ(lever(id, LeverKind::slice_weight)->detail, "control.raise_slices is never");
}

TEST_F(SlicesTest, are_raised_whoever_shares_them_where_that_is_configured) {
  config_.control.raise_slices = core::RaiseSlices::always;
  world_.occupied = {{"/apu.slice", "b.service"}};
  start();
  engine(50);
  for (int i = 0; i < 50 && weight("apu.slice") == 0; ++i) run(100ms, 2ms, 0.9);
  EXPECT_EQ(weight("apu.slice"), 10000);
}

TEST_F(SlicesTest, go_back_after_a_crash) {
  start();
  engine(50);
  for (int i = 0; i < 50 && weight("apu.slice") == 0; ++i) run(100ms, 2ms, 0.9);
  ASSERT_EQ(weight("apu.slice"), 10000);
  crash();
  start();
  EXPECT_EQ(weight("apu.slice"), 0);
  EXPECT_TRUE(units_.drop_ins.empty());
  expect_clean();
}

}  // namespace
}  // namespace apusched::app
