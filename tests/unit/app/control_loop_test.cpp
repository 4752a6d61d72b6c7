// SPDX-License-Identifier: MIT
#include <algorithm>

#include "control_fixture.hpp"

namespace apusched::app {
namespace {

TEST_F(ControlLoopTest, holds_the_group_lever_more_strongly_while_others_make_it_wait) {
  start();
  const auto id = engine(50);
  run(2s, 20us, 0.0);
  EXPECT_EQ(state(id), "meeting");
  EXPECT_EQ(autogroup(), -10);
  run(500ms, 2ms, 0.9);
  EXPECT_EQ(autogroup(), -20);
  EXPECT_EQ(lever(id, LeverKind::autogroup)->value, "-20");
  run(2s, 10us, 0.9);
  EXPECT_TRUE(told(What::kept));
  EXPECT_EQ(state(id), "meeting");
  run(2s, 20us, 0.0);
  EXPECT_EQ(autogroup(), -10);
  remove(id);
  EXPECT_EQ(autogroup(), 0);
  expect_clean();
}

TEST_F(ControlLoopTest, the_built_in_target_is_missed_where_one_wait_in_fifty_takes_a_slice) {
  start();
  const auto id = engine(50);
  run(2s, 6us, 0.0);
  EXPECT_EQ(state(id), "meeting");
  run(300ms, 46us, 0.9);  // a p99 of 3 ms, as measured
  EXPECT_EQ(autogroup(), -20);
}

TEST_F(ControlLoopTest, acts_on_the_second_observation_that_is_over_the_target_by_far) {
  start();
  engine(50);
  run(2s, 6us, 0.9);
  run(config_.control.tick, 2ms, 0.9);
  EXPECT_EQ(autogroup(), -10);
  run(config_.control.tick, 2ms, 0.9);
  EXPECT_EQ(autogroup(), -20);
}

TEST_F(ControlLoopTest, looks_at_the_machine_only_while_something_is_wrong_or_held) {
  start();
  engine(50);
  run(2s, 6us, 0.9);
  meters_.machine_reads = 0;
  run(5s, 6us, 0.9);
  EXPECT_EQ(meters_.machine_reads, 0);
  run(1s, 2ms, 0.9);
  EXPECT_EQ(meters_.machine_reads, 10);
}

TEST_F(ControlLoopTest, decides_nothing_while_the_machine_cannot_be_read) {
  start();
  const auto id = engine(50);
  meters_.machine_fails = true;
  run(2s, 2ms, 0.9);
  EXPECT_EQ(autogroup(), -10);
  EXPECT_EQ(state(id), "observing");
  meters_.machine_fails = false;
  run(300ms, 2ms, 0.9);
  EXPECT_EQ(autogroup(), -20);
}

TEST_F(ControlLoopTest, a_thread_that_computes_is_on_target_while_only_short_work_interrupts_it) {
  start();
  const auto id = engine(50);
  for (int i = 0; i < 20; ++i) {
    meters_.work(50, 2, 60us, 49ms);
    run(config_.control.tick, -1ns, 0.02);
  }
  EXPECT_EQ(state(id), "meeting");
  for (int i = 0; i < 5; ++i) {
    meters_.work(50, 10, 4ms, 5ms);
    run(config_.control.tick, -1ns, 0.5);
  }
  EXPECT_EQ(autogroup(), -20);
}

TEST_F(ControlLoopTest, a_rival_that_the_lever_starves_has_not_gone) {
  start();
  engine(50);
  // One thread that computes on a machine with two CPUs, and hogs: after the lever they get
  // nothing.
  const auto compute = [&](int ticks, bool starved, std::uint32_t hogs) {
    for (int i = 0; i < ticks; ++i) {
      meters_.machine_times.runnable = 2 + hogs;
      meters_.work(50, 10, starved ? 0us : 4ms, starved ? 10ms : 6ms);
      run(config_.control.tick, -1ns, hogs > 0 && !starved ? 0.7 : 0.02);
    }
  };
  compute(10, true, 0);
  for (int i = 0; i < 10 && autogroup() != -20; ++i) compute(1, false, 4);
  ASSERT_EQ(autogroup(), -20);
  compute(30, true, 4);
  EXPECT_EQ(autogroup(), -20);
  EXPECT_TRUE(told(What::kept));
  EXPECT_FALSE(told(What::released));
  compute(10, true, 0);
  EXPECT_EQ(autogroup(), -10);
}

TEST_F(ControlLoopTest, a_wait_that_is_booked_late_hides_no_rival) {
  start();
  engine(50);
  meters_.machine_times.runnable = 3;  // the daemon, the thread, and one that gets nothing
  run(500ms, 2ms, 0.9);
  ASSERT_EQ(autogroup(), -20);
  for (int i = 0; i < 20; ++i) {
    meters_.work(50, 400, i % 2 == 1 ? 500us : 0us, 5us);
    run(config_.control.tick, -1ns, 0.02);
  }
  EXPECT_TRUE(told(What::kept));
  EXPECT_FALSE(told(What::inconclusive));
}

TEST_F(ControlLoopTest, what_wants_the_cpu_for_a_moment_is_no_rival) {
  start();
  engine(50);
  run(500ms, 2ms, 0.9);
  ASSERT_EQ(autogroup(), -20);
  for (int i = 0; i < 15; ++i) {
    meters_.machine_times.runnable = i % 3 == 0 ? 1 : 3;
    run(config_.control.tick, 6us, 0.02);
  }
  EXPECT_EQ(autogroup(), -10);
}

TEST_F(ControlLoopTest, threads_that_wait_for_each_other_have_nobody_to_be_helped_against) {
  start();
  const auto id = engine(50);
  run(3s, 2ms, 0.0);
  EXPECT_EQ(autogroup(), -10);
  EXPECT_NE(service_->view(id)->control->why.find("autogroup has nobody to act against"),
            std::string::npos)
      << service_->view(id)->control->why;
}

TEST_F(ControlLoopTest, undoes_a_lever_that_does_not_help_and_says_so) {
  start();
  const auto id = engine(50);
  run(6s, 2ms, 0.9);
  EXPECT_TRUE(told(What::undone));
  EXPECT_EQ(autogroup(), -10);
  const auto lines = service_->history(100);
  EXPECT_TRUE(std::ranges::any_of(lines, [](const HistoryLine& line) {
    return line.what == "undone" && line.lever == "autogroup" && line.before_us > 1000;
  }));
  remove(id);
}

TEST_F(ControlLoopTest, a_release_in_the_middle_restores_the_original) {
  start();
  const auto id = engine(50);
  run(500ms, 2ms, 0.9);
  EXPECT_EQ(autogroup(), -20);
  remove(id);
  EXPECT_EQ(autogroup(), 0);
  expect_clean();
}

TEST_F(ControlLoopTest, a_process_that_dies_in_the_middle_leaves_nothing_behind) {
  start();
  engine(50);
  world_.add(60);  // its session lives on
  run(500ms, 2ms, 0.9);
  exit(50);
  loop_.settle();
  EXPECT_EQ(autogroup(), 0);
  expect_clean();
}

TEST_F(ControlLoopTest, a_profile_without_target_has_no_timer_and_no_meters) {
  start();
  const auto id = engine(50, "background");
  scan();
  EXPECT_EQ(meters_.opened, 0);
  EXPECT_EQ(state(id), "none");
}

TEST_F(ControlLoopTest, reads_no_more_threads_in_a_tick_than_it_may) {
  start();
  config_.limits.max_processes = 256;
  for (int pid = 100; pid < 200; ++pid) {
    world_.add(pid);
    for (int i = 0; i < 10; ++i) {
      meters_.add(pid, pid * 100 + i);
      meters_.work(pid * 100 + i, 1, 0us, 1ms);
    }
    added(pid);
  }
  for (auto& [tid, times] : meters_.times) times.ran += 10ms;
  scan();
  loop_.advance(config_.control.tick);
  meters_.reads = 0;
  loop_.advance(config_.control.tick);
  EXPECT_LE(meters_.reads, 100);  // one of each, where 64 are too few for two
}

TEST_F(ControlLoopTest, keeps_the_meter_of_a_thread_that_still_matters) {
  start();
  engine(50);
  run(5s, 20us, 0.0);
  EXPECT_EQ(meters_.opened, 1);
}

TEST_F(ControlLoopTest, goes_on_when_a_thread_ends) {
  start();
  const auto id = engine(50);
  meters_.add(50, 51);
  meters_.work(51, 10, 0us, 1ms);
  run(1s, 20us, 0.0);
  meters_.ended.insert(doubles::tid_of(51));
  meters_.members[pid_of(50)].erase(doubles::tid_of(51));
  run(1s, 20us, 0.0);
  EXPECT_EQ(state(id), "meeting");
}

TEST_F(ControlLoopTest, an_idle_process_is_no_reason_to_hold_anything_strongly) {
  start();
  const auto id = engine(50);
  run(500ms, 2ms, 0.9);
  EXPECT_EQ(autogroup(), -20);
  run(2s, -1ns, 0.9);
  EXPECT_EQ(state(id), "idle");
  EXPECT_EQ(autogroup(), -10);
}

TEST_F(ControlLoopTest, idle_processes_are_looked_at_no_more_often_than_they_are_scanned) {
  start();
  engine(50);
  run(1s, 20us, 0.0);
  run(2s, -1ns, 0.0);
  meters_.reads = meters_.clocks = 0;
  run(5s, -1ns, 0.0);
  EXPECT_LE(meters_.clocks, 11);
  EXPECT_EQ(meters_.reads, 0) << "none of its threads can have waited";
  run(1s, 20us, 0.0);
  EXPECT_GE(meters_.reads, 5);  // the first after half a second at most, then each tick
}

TEST_F(ControlLoopTest, of_many_processes_those_that_are_idle_are_looked_at_rarely) {
  start();
  engine(50);
  for (int pid = 100; pid < 200; ++pid) engine(pid);
  run(3s, 6us, 0.0);
  meters_.reads = meters_.clocks = 0;
  run(5s, 6us, 0.0);
  EXPECT_LE(meters_.clocks, 50 + 100 * 11);  // 100 in each of ten scans, one in each tick
  EXPECT_GE(meters_.clocks, 50 + 100 * 8);
  EXPECT_LE(meters_.reads, 51);  // of the one that works
}

TEST_F(ControlLoopTest, one_that_waited_while_it_was_not_looked_at_is_seen_when_it_runs) {
  start();
  const auto id = engine(50);
  run(1s, 6us, 0.0);
  run(3s, -1ns, 0.9);
  ASSERT_EQ(state(id), "idle");
  run(1s, 2ms, 0.9);
  EXPECT_EQ(autogroup(), -20);
}

TEST_F(ControlLoopTest, of_many_processes_that_work_each_is_looked_at_more_rarely_but_enough) {
  config_.limits.max_processes = 1000;
  start();
  std::vector<core::RegistrationId> ids;
  for (int pid = 100; pid < 900; ++pid) ids.push_back(engine(pid));
  for (int tick = 0; tick < 50; ++tick) {
    for (int pid = 100; pid < 900; ++pid) meters_.work(pid, 10, 6us);
    if (tick == 40) meters_.reads = 0;
    run(config_.control.tick, -1ns, 0.0);
  }
  EXPECT_LE(meters_.reads, 2000);
  for (const auto id : ids) EXPECT_EQ(state(id), "meeting");
}

TEST_F(ControlLoopTest, a_registration_or_a_release_looks_at_no_other_process) {
  start();
  engine(50);
  const auto id = engine(60);
  const auto listed = meters_.listed;
  remove(id);
  EXPECT_EQ(meters_.listed, listed);
}

TEST_F(ControlLoopTest, where_no_group_lever_can_act_it_says_why) {
  world_.add(50).cpu_group = "/docker";
  start();
  const auto id = engine(50);
  run(4s, 2ms, 0.9);
  EXPECT_EQ(state(id), "saturated");
  EXPECT_NE(service_->view(id)->control->why.find("autogroup cannot act"), std::string::npos)
      << service_->view(id)->control->why;
}

TEST_F(ControlLoopTest, a_dry_run_observes_and_changes_nothing) {
  start(true);
  const auto id = engine(50);
  run(2s, 2ms, 0.9);
  EXPECT_EQ(autogroup(), 0);
  EXPECT_EQ(state(id), "saturated");
}

TEST_F(ControlLoopTest, an_operators_change_in_the_middle_ends_it) {
  start();
  const auto id = engine(50);
  run(500ms, 2ms, 0.9);
  ASSERT_EQ(autogroup(), -20);
  world_.autogroups.at("/autogroup-1") = 3;
  run(3s, 20us, 0.0);
  EXPECT_EQ(autogroup(), 3);
  EXPECT_EQ(outcome(id, LeverKind::autogroup), Outcome::contended);
  remove(id);
  EXPECT_EQ(autogroup(), 3);
}

}  // namespace
}  // namespace apusched::app
