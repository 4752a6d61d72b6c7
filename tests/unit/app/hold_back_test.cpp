// SPDX-License-Identifier: MIT
// The freezer as the last rung, and the room for more background work.
#include <gmock/gmock.h>

#include <algorithm>

#include "control_fixture.hpp"

namespace apusched::app {
namespace {

using ::testing::HasSubstr;

const std::string kIndexer = "/system.slice/indexer.service";

class HoldBackTest : public ControlLoopTest {
 protected:
  void SetUp() override {
    ControlLoopTest::SetUp();
    config_.control.freeze_percent = 50;
    // Nothing but the last rung is there to be tried.
    auto& server = config_.profiles["server"];
    server.name = "server";
    server.work_class = core::WorkClass::critical;
    server.target_wait = core::WaitTarget::of<20>();
  }
  core::RegistrationId indexer(int pid = 70) {
    world_.add(pid).unified = kIndexer + "/worker";
    freezer_.units[kIndexer].processes.push_back({pid_of(pid), "indexer"});
    return added(pid, "background");
  }
  [[nodiscard]] std::uint32_t percent() const { return freezer_.units.at(kIndexer).percent; }
  /// It misses its target, and the background unit has just been stopped for its sake.
  core::RegistrationId engine_that_needs_it() {
    const auto id = engine(50, "server");
    run(1s, 6us, 0.0);
    run(500ms, 2ms, 0.9);
    EXPECT_EQ(percent(), 50U);
    return id;
  }
  core::RegistrationId saturated_engine() {
    const auto id = engine(50, "server");
    run(1s, 6us, 0.0);
    run(5s, 2ms, 0.9);
    return id;
  }
};

TEST_F(HoldBackTest, stops_background_units_for_a_part_of_the_time_as_long_as_it_helps) {
  start();
  const auto background = indexer();
  const auto id = engine(50, "server");
  run(1s, 6us, 0.0);
  EXPECT_EQ(percent(), 0U);
  run(500ms, 2ms, 0.9);
  EXPECT_EQ(percent(), 50U);
  run(2s, 6us, 0.5);
  EXPECT_TRUE(told(What::kept));
  EXPECT_EQ(percent(), 50U);
  const auto status = lever(background, LeverKind::freezer);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->outcome, Outcome::applied);
  EXPECT_EQ(status->target, "indexer.service");
  EXPECT_EQ(status->value, "50%");
  run(3s, 6us, 0.0);  // the contention has ended
  EXPECT_EQ(percent(), 0U);
  EXPECT_FALSE(lever(background, LeverKind::freezer));
  remove(id);
  remove(background);
  expect_clean();
}

TEST_F(HoldBackTest, lets_them_run_where_it_does_not_help) {
  start();
  indexer();
  saturated_engine();
  EXPECT_EQ(percent(), 0U);
  EXPECT_TRUE(told(What::undone));
}

TEST_F(HoldBackTest, a_unit_that_is_stopped_is_a_rival_still) {
  config_.control.freeze_percent = 90;
  start();
  indexer();
  engine(50, "server");
  run(1s, 6us, 0.0);
  run(500ms, 2ms, 0.5);
  ASSERT_EQ(percent(), 90U);
  // Of the half of the machine that it had, it still uses a tenth.
  world_.processes.at(70).per_look = std::chrono::nanoseconds(10ms).count();
  run(4s, 6us, 0.05);
  EXPECT_TRUE(told(What::kept));
  EXPECT_EQ(percent(), 90U);
  world_.processes.at(70).per_look = 0;
  run(4s, 6us, 0.0);
  EXPECT_EQ(percent(), 0U);
}

TEST_F(HoldBackTest, is_off_unless_the_configuration_says_so) {
  config_.control.freeze_percent = 0;
  start();
  indexer();
  saturated_engine();
  EXPECT_TRUE(freezer_.log.empty());
  EXPECT_EQ(freezer_.looks, 0);
}

TEST_F(HoldBackTest, is_recorded_before_it_is_done) {
  start();
  indexer();
  engine_that_needs_it();
  const auto put = std::ranges::find_if(
      world_.log, [](const auto& line) { return line.starts_with("put freezer"); });
  EXPECT_NE(put, world_.log.end());
  const auto* entry = store_.ledger.find({LeverKind::freezer, kIndexer});
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(core::to_string(entry->original), "0");
}

TEST_F(HoldBackTest, what_a_dead_daemon_stopped_runs_after_the_next_start) {
  start();
  indexer();
  engine_that_needs_it();
  crash();
  freezer_.units.at(kIndexer).percent = 100;  // the guard died while it was stopped
  start();
  EXPECT_EQ(percent(), 0U);
  EXPECT_EQ(store_.ledger.find({LeverKind::freezer, kIndexer}), nullptr);
}

TEST_F(HoldBackTest, a_unit_with_a_stranger_in_it_is_not_stopped_and_that_is_said) {
  start();
  indexer();
  freezer_.units.at(kIndexer).processes.push_back({pid_of(71), "stranger"});
  const auto id = saturated_engine();
  EXPECT_TRUE(freezer_.log.empty());
  EXPECT_EQ(state(id), "saturated");
  EXPECT_THAT(service_->view(id)->control->why, HasSubstr("process 71 in it is not registered"));
}

TEST_F(HoldBackTest, a_stranger_who_comes_into_it_ends_it_at_once) {
  start();
  indexer();
  engine_that_needs_it();
  freezer_.units.at(kIndexer).processes.push_back({pid_of(71), "stranger"});
  run(200ms, 6us, 0.9);
  EXPECT_EQ(percent(), 0U);
}

TEST_F(HoldBackTest, a_process_that_is_released_is_let_run) {
  start();
  const auto background = indexer();
  engine_that_needs_it();
  remove(background);
  EXPECT_EQ(percent(), 0U);
}

TEST_F(HoldBackTest, stops_nothing_any_more_for_one_that_has_ended) {
  start();
  indexer();
  const auto id = engine_that_needs_it();
  remove(id);
  EXPECT_EQ(percent(), 0U);
}

TEST_F(HoldBackTest, lets_everything_run_when_the_daemon_stops) {
  start();
  indexer();
  engine_that_needs_it();
  bool stopped = false;
  service_->stop([&] { stopped = true; });
  loop_.advance(1s);  // threads that were being born are looked for once more
  EXPECT_TRUE(stopped);
  EXPECT_EQ(percent(), 0U);
  expect_clean();
}

TEST_F(HoldBackTest, what_somebody_else_froze_is_left_to_them) {
  start();
  indexer();
  freezer_.units.at(kIndexer).percent = 100;
  saturated_engine();
  EXPECT_TRUE(freezer_.log.empty());
  EXPECT_EQ(percent(), 100U);
}

TEST_F(HoldBackTest, somebody_who_freezes_it_meanwhile_has_it) {
  start();
  const auto background = indexer();
  engine_that_needs_it();
  freezer_.units.at(kIndexer).percent = 100;
  freezer_.foreign(kIndexer, core::FrozenShare::of<100>());
  EXPECT_EQ(outcome(background, LeverKind::freezer), Outcome::contended);
  run(3s, 6us, 0.0);
  EXPECT_EQ(percent(), 100U);
}

TEST_F(HoldBackTest, changes_nothing_in_a_dry_run) {
  start(true);
  indexer();
  saturated_engine();
  EXPECT_TRUE(freezer_.log.empty());
}

TEST_F(HoldBackTest, is_given_up_where_the_guard_does_not_stay) {
  start();
  indexer();
  freezer_.broken = "apusched-freezer ended 3 times within a minute";
  const auto id = saturated_engine();
  EXPECT_TRUE(freezer_.log.empty());
  EXPECT_THAT(service_->view(id)->control->why, HasSubstr("3 times within a minute"));
}

TEST_F(HoldBackTest, a_background_process_stops_nobody) {
  auto& profile = config_.profiles.at("background");
  profile.target_wait = core::WaitTarget::of<20>();
  start();
  indexer();
  engine(50, "background");
  run(1s, 6us, 0.0);
  run(5s, 2ms, 0.9);
  EXPECT_TRUE(freezer_.log.empty());
}

class AdmissionTest : public HoldBackTest {
 protected:
  AdmissionView asked(const std::string& profile = "background") {
    const auto answer = service_->admission(profile);
    EXPECT_TRUE(answer);
    return answer.value_or(AdmissionView{});
  }
};

TEST_F(AdmissionTest, there_is_room_while_nobody_is_out_of_help) {
  start();
  engine(50, "server");
  run(1s, 6us, 0.0);
  EXPECT_TRUE(asked().admits);
}

TEST_F(AdmissionTest, background_programs_wait_while_everything_has_been_tried) {
  start();
  const auto id = saturated_engine();
  ASSERT_EQ(state(id), "saturated");
  EXPECT_FALSE(asked().admits);
  EXPECT_EQ(asked().wait, 30s);
  EXPECT_THAT(asked().why, HasSubstr("process 50 misses its target"));
  EXPECT_TRUE(asked("llm-interactive").admits);
}

TEST_F(AdmissionTest, there_is_room_again_a_while_after) {
  start();
  saturated_engine();
  run(1500ms, 6us, 0.0);
  EXPECT_FALSE(asked().admits);
  run(4s, 6us, 0.0);
  EXPECT_TRUE(asked().admits);
}

TEST_F(AdmissionTest, there_is_room_again_when_it_has_ended) {
  start();
  const auto id = saturated_engine();
  remove(id);
  EXPECT_FALSE(asked().admits);
  loop_.advance(3s);
  EXPECT_TRUE(asked().admits);
}

TEST_F(AdmissionTest, is_not_asked_for_where_it_is_off) {
  config_.control.admission_wait = 0ms;
  start();
  saturated_engine();
  EXPECT_TRUE(asked().admits);
}

TEST_F(AdmissionTest, of_an_unknown_profile_is_an_error) {
  start();
  const auto answer = service_->admission("backgrund");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, core::ErrorCode::not_found);
}

TEST_F(AdmissionTest, a_process_that_runs_is_registered_all_the_same) {
  start();
  saturated_engine();
  indexer();
  EXPECT_EQ(service_->ids().size(), 2U);
}

}  // namespace
}  // namespace apusched::app
