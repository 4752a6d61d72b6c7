// SPDX-License-Identifier: MIT
// Levers that several registrations share: autogroup, unit weights, the GPU's level.
#include "unit/app/service_fixture.hpp"

namespace apusched::app {
namespace {

using Level = core::PerformanceLevel;

class SharedLevers : public ServiceTest {
 protected:
  void SetUp() override { start(); }
  core::RegistrationId gpu_process(int pid) {
    world_.add(pid);
    topology_.queues.insert(pid);
    return added(pid);
  }
};

TEST_F(SharedLevers, are_applied_and_put_back) {
  const auto id = gpu_process(50);
  EXPECT_EQ(autogroup(), -10);
  EXPECT_EQ(units_.facts.cpu_weight, core::Weight::make(1000));
  EXPECT_EQ(units_.facts.io_weight, core::Weight::make(500));
  EXPECT_EQ(levels_.level, Level::high);
  for (const auto kind : {LeverKind::autogroup, LeverKind::cpu_weight, LeverKind::io_weight,
                          LeverKind::performance_level})
    EXPECT_EQ(outcome(id, kind), Outcome::applied) << core::to_string(kind);
  remove(id);
  EXPECT_EQ(autogroup(), 0);
  EXPECT_EQ(units_.facts.cpu_weight, core::Weight());
  EXPECT_TRUE(units_.drop_ins.empty());
  EXPECT_EQ(levels_.level, Level::automatic);
  expect_clean();
}

TEST_F(SharedLevers, the_last_of_two_holders_restores) {
  const auto first = gpu_process(50);
  const auto second = gpu_process(60);
  remove(first);
  EXPECT_EQ(levels_.level, Level::high);
  EXPECT_EQ(autogroup(), -10);
  EXPECT_EQ(units_.facts.cpu_weight, core::Weight::make(1000));
  remove(second);
  EXPECT_EQ(levels_.level, Level::automatic);
  EXPECT_EQ(autogroup(), 0);
  expect_clean();
}

TEST_F(SharedLevers, the_wish_that_favours_its_holder_more_wins) {
  world_.add(50);
  world_.add(60);
  const auto background = added(50, "background");
  EXPECT_EQ(autogroup(), 10);
  const auto critical = added(60);
  EXPECT_EQ(autogroup(), -10);
  EXPECT_EQ(units_.facts.cpu_weight, core::Weight::make(1000));
  remove(critical);
  EXPECT_EQ(autogroup(), 10);
  EXPECT_EQ(units_.facts.cpu_weight, core::Weight::make(20));
  remove(background);
  EXPECT_EQ(autogroup(), 0);
  expect_clean();
}

TEST_F(SharedLevers, released_while_the_original_is_being_read_nothing_is_written) {
  levels_.answers.at_once = false;
  const auto id = gpu_process(50);
  EXPECT_EQ(outcome(id, LeverKind::performance_level), Outcome::pending);
  remove(id);
  levels_.answers.let_go();
  loop_.settle();
  EXPECT_EQ(levels_.writes, 0);
  expect_clean();
}

TEST_F(SharedLevers, released_while_being_written_the_original_comes_back) {
  levels_.answers.at_once = false;
  const auto id = gpu_process(50);
  levels_.answers.let_go();  // also lets the write that follows the reading go
  const auto second = gpu_process(60);
  remove(id);
  remove(second);
  levels_.answers.let_go();
  loop_.settle();
  EXPECT_EQ(levels_.level, Level::automatic);
  expect_clean();
}

TEST_F(SharedLevers, a_value_that_somebody_else_set_is_left_to_them) {
  const auto id = gpu_process(50);
  levels_.level = Level::low;
  world_.autogroups.at("/autogroup-1") = 3;
  remove(id);
  EXPECT_EQ(levels_.level, Level::low);
  EXPECT_EQ(autogroup(), 3);
  expect_clean();
}

TEST_F(SharedLevers, a_drop_in_that_was_rewritten_by_somebody_else_stays) {
  const auto id = gpu_process(50);
  units_.facts.cpu_weight = *core::Weight::make(300);
  remove(id);
  EXPECT_EQ(units_.facts.cpu_weight, core::Weight::make(300));
  EXPECT_TRUE(units_.drop_ins.contains({"llama.service", LeverKind::cpu_weight}));
  EXPECT_FALSE(units_.drop_ins.contains({"llama.service", LeverKind::io_weight}));
}

TEST_F(SharedLevers, a_drop_in_that_was_there_before_stays) {
  units_.drop_ins.insert({"llama.service", LeverKind::cpu_weight});
  remove(gpu_process(50));
  EXPECT_TRUE(units_.drop_ins.contains({"llama.service", LeverKind::cpu_weight}));
}

TEST_F(SharedLevers, a_foreign_level_seen_in_the_telemetry_is_shown_as_contended) {
  const auto id = gpu_process(50);
  ports::GpuTelemetry telemetry;
  telemetry.level = levels_.level = Level::low;
  helper_.events->on_telemetry(topology_.gpus.front().pci, telemetry);
  EXPECT_EQ(outcome(id, LeverKind::performance_level), Outcome::contended);
  EXPECT_EQ(service_->gpus().front().level_owner, "other");
  remove(id);
  EXPECT_EQ(levels_.level, Level::low);
}

TEST_F(SharedLevers, a_reading_from_before_the_write_is_nobodys_doing) {
  levels_.answers.at_once = false;
  const auto id = gpu_process(50);  // asks the helper for readings, too
  loop_.advance(10ms);
  levels_.answers.let_go();
  ASSERT_EQ(outcome(id, LeverKind::performance_level), Outcome::applied);
  ports::GpuTelemetry telemetry;
  telemetry.level = Level::automatic;
  helper_.events->on_telemetry(topology_.gpus.front().pci, telemetry);
  EXPECT_EQ(outcome(id, LeverKind::performance_level), Outcome::applied);
  for (const int asked = helper_.telemetry_requests; helper_.telemetry_requests == asked;) scan();
  helper_.events->on_telemetry(topology_.gpus.front().pci, telemetry);
  EXPECT_EQ(outcome(id, LeverKind::performance_level), Outcome::contended);
}

TEST_F(SharedLevers, a_level_that_a_person_chose_is_never_written) {
  levels_.level = Level::manual;
  const auto id = gpu_process(50);
  EXPECT_EQ(outcome(id, LeverKind::performance_level), Outcome::contended);
  remove(id);
  EXPECT_EQ(levels_.level, Level::manual);
  EXPECT_EQ(levels_.writes, 0);
}

TEST_F(SharedLevers, a_write_that_fails_is_shown_and_tried_again) {
  levels_.error = core::Error{core::ErrorCode::denied, "write", "level", "GPU in reset"};
  const auto id = gpu_process(50);
  EXPECT_EQ(outcome(id, LeverKind::performance_level), Outcome::denied);
  levels_.error.reset();
  loop_.advance(2000ms);
  EXPECT_EQ(outcome(id, LeverKind::performance_level), Outcome::applied);
}

TEST_F(SharedLevers, a_level_that_cannot_be_read_at_first_is_tried_again) {
  levels_.read_error = core::Error{core::ErrorCode::denied, "read", "level", "GPU in reset"};
  const auto id = gpu_process(50);
  EXPECT_EQ(outcome(id, LeverKind::performance_level), Outcome::denied);
  world_.processes.at(50).per_look = 100'000'000;  // of an idle one the level is not held
  loop_.advance(2000ms);
  EXPECT_EQ(outcome(id, LeverKind::performance_level), Outcome::denied);
  levels_.read_error.reset();
  loop_.advance(5000ms);
  EXPECT_EQ(outcome(id, LeverKind::performance_level), Outcome::applied);
  remove(id);
  EXPECT_EQ(levels_.level, Level::automatic);
  expect_clean();
}

TEST_F(SharedLevers, a_level_that_was_never_read_needs_no_restoring) {
  levels_.read_error = core::Error{core::ErrorCode::failed, "read", "level", "no file"};
  const auto id = gpu_process(50);
  remove(id);
  levels_.read_error.reset();
  loop_.advance(5000ms);
  EXPECT_EQ(levels_.writes, 0);
  expect_clean();
}

TEST_F(SharedLevers, a_level_that_no_gpu_takes_is_not_tried_again) {
  levels_.read_error = core::Error{core::ErrorCode::unsupported, "read", "level", "no such thing"};
  const auto id = gpu_process(50);
  EXPECT_EQ(outcome(id, LeverKind::performance_level), Outcome::unsupported);
  levels_.read_error.reset();
  loop_.advance(5000ms);
  EXPECT_EQ(levels_.writes, 0);
}

TEST_F(SharedLevers, a_gpu_that_is_gone_while_its_level_is_held_gets_it_when_it_is_back) {
  levels_.error = core::Error{core::ErrorCode::gone, "write", "level", "no such device"};
  const auto id = gpu_process(50);
  EXPECT_EQ(outcome(id, LeverKind::performance_level), Outcome::gone);
  levels_.error.reset();
  loop_.advance(2000ms);
  EXPECT_EQ(outcome(id, LeverKind::performance_level), Outcome::applied);
}

TEST_F(SharedLevers, a_gpu_that_is_gone_keeps_no_level_to_restore) {
  const auto id = gpu_process(50);
  levels_.error = core::Error{core::ErrorCode::gone, "write", "level", "no such device"};
  remove(id);
  expect_clean();
}

TEST_F(SharedLevers, a_restore_that_fails_is_tried_again) {
  const auto id = gpu_process(50);
  levels_.error = core::Error{core::ErrorCode::denied, "write", "level", "GPU in reset"};
  remove(id);
  EXPECT_FALSE(service_->clean());
  EXPECT_FALSE(report_.warnings.empty());
  levels_.error.reset();
  loop_.advance(2000ms);
  EXPECT_EQ(levels_.level, Level::automatic);
  expect_clean();
}

TEST_F(SharedLevers, the_next_start_restores_what_a_crash_left) {
  gpu_process(50);
  crash();
  world_.processes.erase(50);
  world_.add(60);  // another member of the same session
  start();
  EXPECT_EQ(levels_.level, Level::automatic);
  EXPECT_EQ(autogroup(), 0);
  EXPECT_EQ(units_.facts.cpu_weight, core::Weight());
  EXPECT_TRUE(units_.drop_ins.empty());
  expect_clean();
}

TEST_F(SharedLevers, a_crash_between_recording_and_writing_restores_nothing) {
  levels_.answers.at_once = false;
  gpu_process(50);
  levels_.answers.give([] {});
  crash();
  // The record says "high" was intended; "auto" is still in force.
  store_.ledger.adopt({LeverKind::performance_level, "0000:04:00.0"},
                      {Level::automatic, {}, Level::high, {}, false, {}, false});
  levels_.answers = {};
  start();
  EXPECT_EQ(levels_.level, Level::automatic);
  EXPECT_EQ(levels_.writes, 1) << "the fake counts also a write of what is there";
  expect_clean();
}

TEST_F(SharedLevers, a_crash_while_a_stronger_wish_was_being_written_restores_the_weaker_one) {
  store_.ledger.adopt({LeverKind::autogroup, "/autogroup-1"},
                      {nice_of(0), nice_of(-5), nice_of(-10), {}, false, {}, false});
  world_.autogroups.at("/autogroup-1") = -5;  // the second write never came
  world_.add(60);
  start();
  EXPECT_EQ(autogroup(), 0);
  expect_clean();
}

TEST_F(SharedLevers, what_somebody_changed_after_the_crash_stays) {
  gpu_process(50);
  crash();
  levels_.level = Level::low;
  start();
  EXPECT_EQ(levels_.level, Level::low);
  expect_clean();
}

TEST_F(SharedLevers, a_cpu_cgroup_makes_the_autogroup_unsupported_and_says_why) {
  world_.add(50).cpu_group = "/system.slice/llama.service";
  const auto id = added(50);
  EXPECT_EQ(outcome(id, LeverKind::autogroup), Outcome::unsupported);
  EXPECT_NE(lever(id, LeverKind::autogroup)->detail.find("overrides"), std::string::npos);
  EXPECT_EQ(autogroup(), 0);
}

TEST_F(SharedLevers, units_of_a_users_own_manager_are_unsupported) {
  units_.facts.of_user_manager = true;
  world_.add(50);
  const auto id = added(50);
  EXPECT_EQ(outcome(id, LeverKind::cpu_weight), Outcome::unsupported);
  EXPECT_FALSE(units_.facts.cpu_weight.is_set());
}

}  // namespace
}  // namespace apusched::app
