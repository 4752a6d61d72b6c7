// SPDX-License-Identifier: MIT
#include <algorithm>

#include "unit/app/service_fixture.hpp"

namespace apusched::app {
namespace {

using Nices = std::vector<int>;
class Nice : public ServiceTest {};

TEST_F(Nice, is_in_force_on_every_thread_when_registering_returns) {
  start();
  world_.add(50, {0, 0, 0});
  ASSERT_TRUE(add(50));
  EXPECT_EQ(world_.nices(50), (Nices{-10, -10, -10}));
}

TEST_F(Nice, is_recorded_before_it_is_written) {
  start();
  world_.add(50, {0, 0});
  ASSERT_TRUE(add(50));
  const auto first_write =
      std::ranges::find_if(world_.log, [](const auto& line) { return line.starts_with("write"); });
  const auto puts = std::count_if(world_.log.begin(), first_write,
                                  [](const auto& line) { return line.starts_with("put nice"); });
  EXPECT_EQ(puts, 2);
}

TEST_F(Nice, each_thread_gets_its_own_original_back) {
  start();
  world_.add(50, {0, 5, -3});
  const auto id = added(50);
  EXPECT_EQ(world_.nices(50), (Nices{-10, -10, -10}));
  remove(id);
  EXPECT_EQ(world_.nices(50), (Nices{0, 5, -3}));
  expect_clean();
}

TEST_F(Nice, a_thread_born_later_inherits_the_boost_and_gets_its_creators_original) {
  start();
  world_.add(50, {4});
  const auto id = added(50);
  world_.add_thread(50, 60, -10);
  scan();
  EXPECT_EQ(service_->view(id)->threads, 2U);
  remove(id);
  EXPECT_EQ(world_.nices(50), (Nices{4, 4}));
}

TEST_F(Nice, a_thread_born_after_the_last_scan_is_put_back_too) {
  start();
  world_.add(50, {4});
  const auto id = added(50);
  world_.add_thread(50, 60, -10);
  remove(id);
  EXPECT_EQ(world_.nices(50), (Nices{4, 4}));
}

TEST_F(Nice, a_thread_reset_on_fork_is_boosted_and_gets_its_creators_original) {
  start();
  world_.add(50, {5});
  const auto id = added(50);
  world_.add_thread(50, 60, 0);  // SCHED_RESET_ON_FORK: a negative nice becomes 0
  scan();
  EXPECT_EQ(world_.nices(50), (Nices{-10, -10}));
  remove(id);
  EXPECT_EQ(world_.nices(50), (Nices{5, 5}));
}

TEST_F(Nice, a_thread_that_somebody_else_reniced_is_left_to_them) {
  start();
  world_.add(50, {0, 0});
  const auto id = added(50);
  world_.thread(51)->nice = 7;
  scan();
  EXPECT_EQ(world_.nices(50), (Nices{-10, 7}));
  EXPECT_NE(lever(id, LeverKind::nice)->detail.find("somebody else"), std::string::npos);
  remove(id);
  EXPECT_EQ(world_.nices(50), (Nices{0, 7}));
}

TEST_F(Nice, a_process_whose_threads_were_all_reniced_is_contended) {
  start();
  world_.add(50, {0});
  const auto id = added(50);
  world_.thread(50)->nice = 7;
  scan();
  EXPECT_EQ(outcome(id, LeverKind::nice), Outcome::contended);
}

TEST_F(Nice, a_refusal_is_shown_and_the_registration_stays) {
  start();
  world_.add(50, {0}).threads.at(50).refuses = true;
  const auto id = added(50);
  EXPECT_EQ(outcome(id, LeverKind::nice), Outcome::denied);
  remove(id);
  expect_clean();
}

TEST_F(Nice, nothing_is_written_where_the_original_cannot_be_recorded) {
  start();
  world_.add(50, {0});
  store_.fails = true;
  const auto id = added(50);
  EXPECT_EQ(world_.nices(50), (Nices{0}));
  EXPECT_EQ(autogroup(), 0);
  EXPECT_EQ(levels_.writes, 0);
  EXPECT_EQ(outcome(id, LeverKind::nice), Outcome::failed);
}

TEST_F(Nice, the_floor_bounds_what_a_profile_asks_for) {
  config_.limits.nice_floor = core::Nice::of<-5>();
  start();
  world_.add(50, {0});
  const auto id = added(50);
  EXPECT_EQ(world_.nices(50), (Nices{-5}));
  EXPECT_EQ(autogroup(), -5);
  remove(id);
  EXPECT_EQ(world_.nices(50), (Nices{0}));
  EXPECT_EQ(autogroup(), 0);
}

TEST_F(Nice, too_many_threads_are_refused_and_nothing_is_changed) {
  config_.limits.max_threads_per_process = 2;
  start();
  world_.add(50, {0, 0, 0});
  const auto id = add(50);
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, core::ErrorCode::limit_reached);
  EXPECT_EQ(world_.nices(50), (Nices{0, 0, 0}));
  expect_clean();
}

TEST_F(Nice, a_dry_run_writes_nothing_and_says_so) {
  start(true);
  topology_.queues.insert(50);
  world_.add(50, {0});
  const auto id = added(50);
  for (const auto kind :
       {LeverKind::nice, LeverKind::autogroup, LeverKind::cpu_weight, LeverKind::performance_level})
    EXPECT_EQ(outcome(id, kind), Outcome::dry_run) << core::to_string(kind);
  remove(id);
  EXPECT_TRUE(world_.log.empty());
  EXPECT_EQ(levels_.writes, 0);
  EXPECT_FALSE(units_.facts.cpu_weight.is_set());
}

TEST_F(Nice, the_next_start_restores_threads_also_those_born_meanwhile) {
  start();
  world_.add(50, {5});
  added(50);
  crash();
  world_.add_thread(50, 60, -10);
  start();
  EXPECT_EQ(world_.nices(50), (Nices{5, 5}));
  EXPECT_EQ(autogroup(), 0);
  expect_clean();
}

TEST_F(Nice, the_next_start_leaves_alone_who_has_the_pid_now) {
  start();
  world_.add(50, {0});
  added(50);
  crash();
  world_.add(50, {-10});  // another process, another start time
  start();
  EXPECT_EQ(world_.nices(50), (Nices{-10}));
  expect_clean();
}

}  // namespace
}  // namespace apusched::app
