// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <random>

#include "unit/app/service_fixture.hpp"

namespace apusched::app {
namespace {

using Nices = std::vector<int>;

class Registry : public ServiceTest {
 protected:
  core::ErrorCode refused(int pid, const std::string& profile = "llm-interactive") {
    const auto id = add(pid, profile);
    EXPECT_FALSE(id);
    return id ? core::ErrorCode::failed : id.error().code;
  }
};

TEST_F(Registry, names_the_profiles_there_are_when_one_is_unknown) {
  start();
  world_.add(50);
  const auto id = add(50, "turbo");
  ASSERT_FALSE(id);
  EXPECT_NE(core::to_sentence(id.error()).find("background, llm-interactive"), std::string::npos);
}

TEST_F(Registry, refuses_what_must_not_be_touched) {
  start();
  world_.add(1);
  world_.add(::getpid());
  world_.add(50).kernel_thread = true;
  EXPECT_EQ(refused(1), core::ErrorCode::denied);
  EXPECT_EQ(refused(::getpid()), core::ErrorCode::denied);
  EXPECT_EQ(refused(50), core::ErrorCode::denied);
  EXPECT_EQ(refused(51), core::ErrorCode::gone);
}

TEST_F(Registry, refuses_a_process_twice) {
  start();
  world_.add(50);
  added(50);
  EXPECT_EQ(refused(50), core::ErrorCode::contended);
}

TEST_F(Registry, keeps_to_its_limit_and_has_room_again_after_a_release) {
  config_.limits.max_processes = 1;
  start();
  world_.add(50);
  world_.add(60);
  const auto id = added(50);
  EXPECT_EQ(refused(60), core::ErrorCode::limit_reached);
  remove(id);
  added(60);
}

TEST_F(Registry, sees_an_exit_at_once_and_sets_no_timer_afterwards) {
  start();
  world_.add(50);
  topology_.queues.insert(50);
  const auto id = added(50);
  EXPECT_EQ(loop_.watches(), 1U);
  topology_.queues.clear();
  exit(50);
  EXPECT_FALSE(service_->view(id));
  EXPECT_EQ(levels_.level, core::PerformanceLevel::automatic);
  EXPECT_EQ(loop_.timers(), 0U);
  EXPECT_EQ(loop_.watches(), 0U);
  EXPECT_EQ(helper_.mode, ports::ProbeMode::off);
}

TEST_F(Registry, sets_no_timer_while_nothing_is_registered) {
  start();
  EXPECT_EQ(loop_.timers(), 0U);
}

TEST_F(Registry, releasing_what_is_not_registered_is_an_error) {
  start();
  const auto done = service_->remove(core::RegistrationId::of<9>(), "test");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, core::ErrorCode::not_found);
}

TEST_F(Registry, covers_children_there_are_and_children_born_later) {
  start();
  world_.add(50).children = {60};
  world_.add(60);
  const auto id = added(50, "llm-interactive", true);
  EXPECT_EQ(world_.nices(60), (Nices{-10}));
  world_.add(70, {-10});  // born boosted
  world_.processes.at(60).children = {70};
  scan();
  EXPECT_EQ(service_->view(id)->members, 3U);
  remove(id);
  for (const int pid : {50, 60, 70}) EXPECT_EQ(world_.nices(pid), (Nices{0})) << pid;
  expect_clean();
}

TEST_F(Registry, keeps_covering_the_workers_of_a_wrapper_that_ended) {
  start();
  world_.add(50).children = {60};
  world_.add(60);
  const auto id = added(50, "llm-interactive", true);
  exit(50);
  ASSERT_TRUE(service_->view(id));
  EXPECT_EQ(world_.nices(60), (Nices{-10}));
  exit(60);
  EXPECT_FALSE(service_->view(id));
}

TEST_F(Registry, puts_children_back_once_that_are_not_covered) {
  start();
  world_.add(50);
  added(50);
  world_.add(60, {-10});
  world_.processes.at(50).children = {60};
  scan();
  EXPECT_EQ(world_.nices(60), (Nices{0}));
  world_.thread(60)->nice = -10;  // somebody's own wish now
  scan();
  EXPECT_EQ(world_.nices(60), (Nices{-10}));
}

TEST_F(Registry, puts_a_child_back_that_was_born_after_the_last_scan) {
  start();
  for (const bool covered : {false, true}) {
    world_.add(50);
    const auto id = added(50, "llm-interactive", covered);
    world_.add(60, {-10});
    world_.processes.at(50).children = {60};
    remove(id);
    EXPECT_EQ(world_.nices(60), (Nices{0})) << covered;
  }
}

TEST_F(Registry, puts_back_what_was_being_born_when_it_was_released) {
  start();
  for (const bool stopping : {false, true}) {
    world_.add(50);
    const auto id = added(50);
    bool stopped = false;
    if (stopping)
      service_->stop([&] { stopped = true; });
    else
      remove(id);
    if (!stopping) {  // which looks at once, too early
      world_.add(80);
      remove(added(80));
    }
    world_.processes.at(50).children = {60};
    world_.add(60, {-10});
    world_.add_thread(50, 51, -10);
    EXPECT_FALSE(stopped);
    loop_.advance(200ms);
    EXPECT_EQ(stopped, stopping);
    EXPECT_EQ(world_.nices(60), (Nices{0}));
    EXPECT_EQ(world_.nices(50), (Nices{0, 0}));
  }
}

TEST_F(Registry, leaves_a_child_alone_that_had_the_same_nice_before_by_its_own_choice) {
  start();
  world_.add(50).children = {60};
  world_.add(60, {-10});
  const auto id = added(50);
  scan();
  EXPECT_EQ(world_.nices(60), (Nices{-10}));
  remove(id);
  EXPECT_EQ(world_.nices(60), (Nices{-10}));
}

TEST_F(Registry, puts_a_grandchild_back_that_was_born_before_its_parent_was_put_back) {
  start();
  world_.add(50);
  const auto id = added(50);
  world_.add(60, {-10}).children = {70};
  world_.add(70, {-10});
  world_.processes.at(50).children = {60};
  scan();
  EXPECT_EQ(world_.nices(60), (Nices{0}));
  EXPECT_EQ(world_.nices(70), (Nices{0}));
  remove(id);
}

TEST_F(Registry, takes_for_the_original_of_a_descendant_what_it_would_have_had_without_us) {
  start();
  for (const bool covered : {false, true}) {
    world_.add(50);
    const auto ancestor = added(50, "llm-interactive", covered);
    world_.add(60, {-10}).children = {70};
    world_.add(70, {-10});
    world_.processes.at(50).children = {60};
    const auto descendant = added(70, "background");
    remove(ancestor);
    EXPECT_EQ(world_.nices(70), (Nices{10})) << covered;
    remove(descendant);
    EXPECT_EQ(world_.nices(70), (Nices{0})) << covered;
  }
}

TEST_F(Registry, gives_a_process_to_the_nearest_registration_and_back_when_that_ends) {
  start();
  world_.add(50).children = {60};
  world_.add(60).children = {70};
  world_.add(70);
  const auto outer = added(50, "llm-interactive", true);
  EXPECT_EQ(world_.nices(70), (Nices{-10}));
  const auto inner = added(60, "background", true);
  EXPECT_EQ(service_->view(outer)->members, 1U);
  EXPECT_EQ(service_->view(inner)->members, 2U);
  scan();
  EXPECT_EQ(world_.nices(60), (Nices{10}));
  EXPECT_EQ(world_.nices(70), (Nices{10}));
  remove(inner);
  scan();
  EXPECT_EQ(service_->view(outer)->members, 3U);
  EXPECT_EQ(world_.nices(70), (Nices{-10}));
  remove(outer);
  EXPECT_EQ(world_.nices(60), (Nices{0}));
  EXPECT_EQ(world_.nices(70), (Nices{0}));
}

TEST_F(Registry, ends_a_registration_whose_last_process_is_registered_itself) {
  start();
  world_.add(50).children = {60};
  world_.add(60);
  const auto outer = added(50, "llm-interactive", true);
  exit(50);
  const auto inner = added(60, "background");
  EXPECT_FALSE(service_->view(outer));
  remove(inner);
  EXPECT_EQ(world_.nices(60), (Nices{0}));
}

TEST_F(Registry, leaves_a_child_alone_that_is_registered_itself) {
  start();
  world_.add(50);
  const auto parent = added(50);
  world_.add(60, {-10});
  world_.processes.at(50).children = {60};
  const auto child = added(60);
  remove(parent);
  EXPECT_EQ(world_.nices(60), (Nices{-10}));
  remove(child);
}

TEST_F(Registry, looks_at_everyone_in_turn_where_a_scan_may_not_look_at_all) {
  config_.limits.max_threads_per_scan = 1;
  start();
  for (const int pid : {50, 60, 70}) {
    world_.add(pid);
    added(pid);
  }
  for (const int pid : {50, 60, 70}) world_.add_thread(pid, pid + 1, 0);
  for (int i = 0; i < 3; ++i) scan();
  for (const int pid : {50, 60, 70}) EXPECT_EQ(world_.nices(pid), (Nices{-10, -10})) << pid;
}

TEST_F(Registry, the_level_follows_the_queues_of_the_process) {
  start();
  world_.add(50);
  const auto id = added(50);
  EXPECT_EQ(levels_.level, core::PerformanceLevel::automatic);
  topology_.queues.insert(50);
  scan();
  EXPECT_EQ(levels_.level, core::PerformanceLevel::high);
  EXPECT_EQ(service_->view(id)->gpus, std::vector<std::string>{"0000:04:00.0"});
  topology_.queues.clear();
  scan();
  EXPECT_EQ(levels_.level, core::PerformanceLevel::automatic);
}

TEST_F(Registry, probes_continuously_while_the_process_works_and_in_bursts_while_it_idles) {
  start();
  world_.add(50);
  topology_.queues.insert(50);
  added(50);
  EXPECT_EQ(helper_.mode, ports::ProbeMode::continuous);
  for (int i = 0; i < 10; ++i) scan();
  EXPECT_EQ(helper_.mode, ports::ProbeMode::burst);
  world_.processes.at(50).activity += 100'000'000;
  scan();
  EXPECT_EQ(helper_.mode, ports::ProbeMode::continuous);
}

TEST_F(Registry, stopping_restores_everything_and_then_calls_back) {
  start();
  world_.add(50);
  topology_.queues.insert(50);
  added(50);
  levels_.answers.at_once = false;
  bool stopped = false;
  service_->stop([&] { stopped = true; });
  loop_.advance(100ms);
  EXPECT_FALSE(stopped) << "the level is still on its way";
  levels_.answers.let_go();
  EXPECT_TRUE(stopped);
  EXPECT_EQ(world_.nices(50), (Nices{0}));
  expect_clean();
}

TEST_F(Registry, stopping_gives_up_after_a_while_and_leaves_the_rest_to_the_ledger) {
  start();
  world_.add(50);
  topology_.queues.insert(50);
  added(50);
  levels_.answers.at_once = false;
  bool stopped = false;
  service_->stop([&] { stopped = true; });
  loop_.advance(6000ms);
  EXPECT_TRUE(stopped);
  EXPECT_EQ(store_.ledger.size(), 1U);
}

TEST_F(Registry, says_why_there_is_no_gpu) {
  topology_.gpus.clear();
  start();
  ASSERT_EQ(service_->degraded().size(), 1U);
  EXPECT_NE(service_->degraded().front().find("no amdkfd"), std::string::npos);
}

TEST_F(Registry, says_that_a_gpu_is_gone_and_that_it_is_back) {
  start();
  world_.add(50);
  topology_.queues.insert(50);
  const auto id = added(50);
  EXPECT_EQ(helper_.mode, ports::ProbeMode::continuous);
  topology_.gone = true;
  topology_.queues.clear();
  ASSERT_EQ(service_->degraded().size(), 1U);
  EXPECT_NE(service_->degraded().front().find("0000:04:00.0: it is gone"), std::string::npos);
  scan();
  EXPECT_EQ(helper_.mode, ports::ProbeMode::off);
  EXPECT_EQ(report_.degraded_count, 1);
  topology_.gone = false;
  topology_.queues.insert(50);
  scan();
  EXPECT_TRUE(service_->degraded().empty());
  EXPECT_EQ(helper_.mode, ports::ProbeMode::continuous);
  EXPECT_EQ(outcome(id, LeverKind::performance_level), Outcome::applied);
}

TEST_F(Registry, says_that_a_gpu_works_again_once_a_sample_shows_it) {
  start();
  const auto gpu = topology_.gpus.front().pci;
  helper_.events->on_state(gpu, ports::HelperState::degraded, "its queue hangs");
  helper_.events->on_state(gpu, ports::HelperState::starting, "");
  helper_.events->on_state(gpu, ports::HelperState::ready, "");
  helper_.events->on_sample(gpu, {core::ProbeSource::queue, true, 0ns});
  ASSERT_EQ(service_->degraded().size(), 1U);
  EXPECT_NE(service_->degraded().front().find("its queue hangs"), std::string::npos);
  EXPECT_EQ(service_->gpus().front().helper, "degraded: its queue hangs");
  helper_.events->on_sample(gpu, {core::ProbeSource::queue, false, 10us});
  EXPECT_TRUE(service_->degraded().empty());
}

TEST_F(Registry, forgets_a_gpus_trouble_once_nobody_needs_the_gpu) {
  start();
  const auto gpu = topology_.gpus.front().pci;
  helper_.events->on_state(gpu, ports::HelperState::degraded, "its queue hangs");
  helper_.events->on_state(gpu, ports::HelperState::absent, "");
  EXPECT_TRUE(service_->degraded().empty());
}

/// Registrations, exits, births, foreign changes and refusals in random order: at the end every
/// value that no stranger changed is the original one, and nothing is left in ledger or store.
class RandomLives : public ServiceTest, public ::testing::WithParamInterface<unsigned> {
 protected:
  int any(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }

  void step() {
    const int pid = 100 + 10 * any(0, 9);
    switch (any(0, 7)) {
      case 0:
        if (!world_.processes.contains(pid)) world_.add(pid, {any(0, 5)});
        break;
      case 1:
        if (auto id = add(pid, any(0, 1) == 0 ? "background" : "llm-interactive"); id)
          ids_.push_back(*id);
        break;
      case 2:
        if (!ids_.empty()) static_cast<void>(service_->remove(ids_[index()], "test"));
        break;
      case 3:
        exit(pid);
        break;
      case 4:
        topology_.queues.contains(pid) ? topology_.queues.erase(pid)
                                       : topology_.queues.insert(pid).second;
        break;
      case 5:
        scan();
        break;
      case 6:
        units_.absent = !units_.absent;
        break;
      default:
        levels_.answers.at_once = !levels_.answers.at_once;
        levels_.answers.let_go();
        break;
    }
    loop_.settle();
  }
  std::size_t index() {
    return static_cast<std::size_t>(any(0, static_cast<int>(ids_.size()) - 1));
  }

  std::mt19937 random_{GetParam()};
  std::vector<core::RegistrationId> ids_;
};

TEST_P(RandomLives, end_with_every_original_back) {
  start();
  world_.add(7);  // keeps the session alive, so that its autogroup can be restored
  std::map<int, std::vector<int>> originals;
  for (int i = 0; i < 2000; ++i) {
    step();
    for (const auto& [pid, process] : world_.processes)
      if (!originals.contains(pid)) originals[pid] = {};
  }
  levels_.answers.at_once = true;
  levels_.answers.let_go();
  units_.absent = false;
  for (const auto id : service_->ids()) remove(id);
  loop_.advance(300'000ms);
  EXPECT_EQ(levels_.level, core::PerformanceLevel::automatic);
  EXPECT_EQ(autogroup(), 0);
  EXPECT_FALSE(units_.facts.cpu_weight.is_set());
  EXPECT_FALSE(units_.facts.io_weight.is_set());
  EXPECT_TRUE(units_.drop_ins.empty());
  for (const auto& [pid, process] : world_.processes)
    for (const int nice : world_.nices(pid)) {
      EXPECT_GE(nice, 0) << pid;
      EXPECT_LE(nice, 5) << pid;
    }
  expect_clean();
  EXPECT_EQ(loop_.timers(), 0U);
  EXPECT_EQ(levels_.answers.waiting(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomLives, ::testing::Range(1U, 6U));

}  // namespace
}  // namespace apusched::app
