// SPDX-License-Identifier: MIT
// What the background profile does to threads, besides nice.
#include <algorithm>

#include "unit/app/service_fixture.hpp"

namespace apusched::app {
namespace {

using Policy = core::SchedulingPolicy;
using core::IoClass;
using core::IoPriority;
using Policies = std::vector<Policy>;

class Background : public ServiceTest {
 protected:
  Policies policies(int pid) {
    Policies result;
    for (const auto& [tid, thread] : world_.processes.at(pid).threads)
      result.push_back(thread.policy);
    return result;
  }
  std::vector<IoPriority> io(int pid) {
    std::vector<IoPriority> result;
    for (const auto& [tid, thread] : world_.processes.at(pid).threads) result.push_back(thread.io);
    return result;
  }
};

TEST_F(Background, threads_run_only_where_nobody_else_wants_the_cpu_or_the_disk) {
  start();
  world_.add(50, {0, 0});
  const auto id = added(50, "background");
  EXPECT_EQ(policies(50), (Policies{Policy::idle, Policy::idle}));
  EXPECT_EQ(io(50), (std::vector{IoPriority{IoClass::idle, 0}, IoPriority{IoClass::idle, 0}}));
  EXPECT_EQ(outcome(id, LeverKind::scheduling), Outcome::applied);
  EXPECT_EQ(lever(id, LeverKind::io_class)->value, "idle/0");
}

TEST_F(Background, each_thread_gets_its_own_original_back) {
  start();
  auto& process = world_.add(50, {0, 3});
  process.threads.at(50).io = {IoClass::best_effort, 2};
  process.threads.at(51).policy = Policy::batch;
  const auto id = added(50, "background");
  remove(id);
  EXPECT_EQ(policies(50), (Policies{Policy::normal, Policy::batch}));
  EXPECT_EQ(io(50), (std::vector{IoPriority{IoClass::best_effort, 2}, IoPriority{}}));
  EXPECT_EQ(world_.nices(50), (std::vector{0, 3}));
  expect_clean();
}

TEST_F(Background, originals_are_recorded_before_they_are_changed) {
  start();
  world_.add(50);
  added(50, "background");
  for (const auto* what : {"policy", "io"}) {
    const std::string kind = what == std::string("io") ? "io_class" : "scheduling";
    const auto put = std::ranges::find_if(
        world_.log, [&](const auto& line) { return line.starts_with("put " + kind); });
    const auto write = std::ranges::find_if(world_.log, [&](const auto& line) {
      return line.starts_with("write " + std::string(what));
    });
    ASSERT_NE(write, world_.log.end()) << what;
    EXPECT_LT(put, write) << what;
  }
}

TEST_F(Background, a_real_time_thread_is_left_alone) {
  start();
  world_.add(50, {0, 0}).threads.at(51).policy = Policy::other;
  const auto id = added(50, "background");
  EXPECT_EQ(policies(50), (Policies{Policy::idle, Policy::other}));
  EXPECT_NE(lever(id, LeverKind::scheduling)->detail.find("somebody else"), std::string::npos);
  remove(id);
  EXPECT_EQ(policies(50), (Policies{Policy::normal, Policy::other}));
}

TEST_F(Background, what_somebody_else_set_since_is_theirs) {
  start();
  world_.add(50);
  const auto id = added(50, "background");
  world_.thread(50)->policy = Policy::batch;
  scan();
  EXPECT_EQ(outcome(id, LeverKind::scheduling), Outcome::contended);
  remove(id);
  EXPECT_EQ(policies(50), (Policies{Policy::batch}));
  EXPECT_EQ(io(50), (std::vector{IoPriority{}}));
}

TEST_F(Background, a_thread_born_later_gets_its_creators_original) {
  start();
  world_.add(50).threads.at(50).policy = Policy::batch;
  const auto id = added(50, "background");
  world_.add_thread(50, 60, 10);
  scan();
  remove(id);
  EXPECT_EQ(policies(50), (Policies{Policy::batch, Policy::batch}));
  EXPECT_EQ(io(50), (std::vector{IoPriority{}, IoPriority{}}));
}

TEST_F(Background, a_child_that_is_not_covered_is_put_back) {
  start();
  world_.add(50);
  const auto id = added(50, "background");
  auto& child = world_.add(60, {10});
  child.threads.at(60).policy = Policy::idle;
  child.threads.at(60).io = {IoClass::idle, 0};
  world_.processes.at(50).children = {60};
  scan();
  EXPECT_EQ(policies(60), (Policies{Policy::normal}));
  EXPECT_EQ(io(60), (std::vector{IoPriority{}}));
  EXPECT_EQ(world_.nices(60), (std::vector{0}));
  remove(id);
}

TEST_F(Background, the_next_start_restores_it) {
  start();
  world_.add(50).threads.at(50).io = {IoClass::best_effort, 2};
  added(50, "background");
  crash();
  start();
  EXPECT_EQ(policies(50), (Policies{Policy::normal}));
  EXPECT_EQ(io(50), (std::vector{IoPriority{IoClass::best_effort, 2}}));
  expect_clean();
}

TEST_F(Background, a_refusal_is_shown_and_nothing_is_left) {
  start();
  world_.add(50).threads.at(50).refuses = true;
  const auto id = added(50, "background");
  EXPECT_EQ(outcome(id, LeverKind::scheduling), Outcome::denied);
  EXPECT_EQ(outcome(id, LeverKind::io_class), Outcome::denied);
  remove(id);
  expect_clean();
}

TEST_F(Background, nothing_is_written_where_the_original_cannot_be_recorded) {
  start();
  world_.add(50);
  store_.fails = true;
  const auto id = added(50, "background");
  EXPECT_EQ(policies(50), (Policies{Policy::normal}));
  EXPECT_EQ(io(50), (std::vector{IoPriority{}}));
  EXPECT_EQ(outcome(id, LeverKind::scheduling), Outcome::failed);
}

TEST_F(Background, a_dry_run_writes_nothing) {
  start(true);
  world_.add(50);
  const auto id = added(50, "background");
  EXPECT_EQ(policies(50), (Policies{Policy::normal}));
  EXPECT_EQ(outcome(id, LeverKind::io_class), Outcome::dry_run);
}

TEST_F(Background, best_effort_is_its_lowest_level) {
  config_.profiles.at("background").io_class = IoClass::best_effort;
  config_.profiles.at("background").scheduling = Policy::batch;
  start();
  world_.add(50);
  added(50, "background");
  EXPECT_EQ(policies(50), (Policies{Policy::batch}));
  EXPECT_EQ(io(50), (std::vector{IoPriority{IoClass::best_effort, 7}}));
}

}  // namespace
}  // namespace apusched::app
