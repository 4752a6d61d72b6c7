// SPDX-License-Identifier: MIT
// CPUs with background work only save energy while packets of another process wait too long.
#include <gmock/gmock.h>

#include "gpu_control_fixture.hpp"

namespace apusched::app {
namespace {

using core::EnergyWord;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kDecode = 100;
constexpr int kCrawler = 200;

core::CpuSet cpus(std::initializer_list<std::size_t> numbers) {
  core::CpuSet set;
  for (const auto number : numbers) set.set(number);
  return set;
}

/// A process on CPUs 0 and 1 whose GPU gets too little power as long as background work on CPUs 2
/// and 3 takes it.
class BackgroundEnergyTest : public GpuControlTest {
 protected:
  void SetUp() override {
    GpuControlTest::SetUp();
    config_.control.background_energy = core::EnergySaving::power;
    config_.control.timer_slack.reset();
    for (std::size_t cpu = 0; cpu < 4; ++cpu)
      energy_.preferences.emplace(cpu, EnergyWord::balance_performance);
  }
  core::RegistrationId decode(int pid = kDecode) {
    agents_of_.push_back(engine(pid));
    world_.processes.at(pid).cpus = cpus({0, 1});
    return added(pid, "decode");
  }
  core::RegistrationId indexer() {
    auto& process = world_.add(kCrawler);
    process.cpus = home_;
    process.per_look = std::chrono::nanoseconds(400ms).count();
    return added(kCrawler, "background");
  }
  /// `slow`: as long as the CPUs of the background take their power.
  void run(std::chrono::milliseconds time, bool slow, bool works = true) {
    for (auto left = time; left > 0ms; left -= config_.control.tick) {
      const bool waits = slow && (energy_.of(2) != "power" || !cures_);
      for (const auto agent : agents_of_)
        dispatch(agent, works ? std::optional(waits ? 400us : 100us) : std::nullopt);
      loop_.advance(config_.control.tick);
      loop_.settle();
    }
  }
  /// What it waits while nobody is in the way and nothing helps becomes the yardstick after a
  /// while.
  template <typename Condition>
  void run_until(Condition condition, bool slow) {
    for (int tick = 0; tick < 100 && !condition(); ++tick) run(config_.control.tick, slow);
    EXPECT_TRUE(condition());
  }
  /// It misses its target, and nothing can be done.
  core::RegistrationId decode_in_vain() {
    background_ = indexer();
    const auto id = decode();
    run(3s, false);
    run_until([&] { return state(id) == "saturated"; }, true);
    return id;
  }
  /// It misses its target, and the CPUs of the background save energy for its sake.
  core::RegistrationId decode_that_needs_it() {
    background_ = indexer();
    const auto id = decode();
    run(3s, false);
    run(6s, true);
    EXPECT_EQ(words(), "balance_performance balance_performance power power");
    return id;
  }
  std::string words() {
    std::string text;
    for (const auto& [cpu, preference] : energy_.preferences)
      text += (text.empty() ? "" : " ") + preference.text();
    return text;
  }
  std::string why(core::RegistrationId id) {
    const auto status = lever(id, LeverKind::energy_preference);
    return status ? status->detail : "nothing is said";
  }

  std::vector<core::AgentId> agents_of_;
  std::optional<core::RegistrationId> background_;
  core::CpuSet home_ = cpus({2, 3});  ///< of background work
  bool cures_ = true;
};

constexpr const char* kAsBefore =
    "balance_performance balance_performance balance_performance balance_performance";

TEST_F(BackgroundEnergyTest, they_save_as_long_as_it_helps) {
  start();
  indexer();
  const auto id = decode();
  run(3s, false);
  EXPECT_EQ(words(), kAsBefore);
  EXPECT_EQ(outcome(id, LeverKind::energy_preference), Outcome::standby);
  run(6s, true);
  EXPECT_EQ(words(), "balance_performance balance_performance power power");
  EXPECT_EQ(told(What::kept), 1);
  const auto status = lever(id, LeverKind::energy_preference);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->outcome, Outcome::applied);
  EXPECT_EQ(status->target, "CPUs 2-3");
  EXPECT_EQ(status->value, "power");
}

TEST_F(BackgroundEnergyTest, they_get_back_what_they_had_where_it_does_not_help) {
  cures_ = false;
  start();
  indexer();
  const auto id = decode();
  run(3s, false);
  run(10s, true);
  EXPECT_EQ(words(), kAsBefore);
  EXPECT_GE(told(What::undone), 1);
  EXPECT_NE(outcome(id, LeverKind::energy_preference), Outcome::applied);
}

TEST_F(BackgroundEnergyTest, it_is_off_unless_the_configuration_says_so) {
  config_.control.background_energy = core::EnergySaving::off;
  start();
  indexer();
  const auto id = decode();
  run(3s, false);
  run(6s, true);
  EXPECT_EQ(energy_.looks, 0);
  EXPECT_FALSE(lever(id, LeverKind::energy_preference));
}

TEST_F(BackgroundEnergyTest, nothing_is_looked_at_while_the_target_is_met) {
  start();
  indexer();
  decode();
  run(5s, false);
  EXPECT_EQ(energy_.looks, 0);
}

TEST_F(BackgroundEnergyTest, it_ends_with_the_process_that_rests) {
  start();
  decode_that_needs_it();
  run(5s, true, false);
  EXPECT_EQ(words(), kAsBefore);
}

TEST_F(BackgroundEnergyTest, it_ends_with_the_registration_and_leaves_no_trace) {
  start();
  remove(decode_that_needs_it());
  EXPECT_EQ(words(), kAsBefore);
  remove(*background_);
  expect_clean();
}

TEST_F(BackgroundEnergyTest, it_ends_with_the_daemon) {
  start();
  decode_that_needs_it();
  bool stopped = false;
  service_->stop([&] { stopped = true; });
  loop_.advance(1s);
  EXPECT_TRUE(stopped);
  EXPECT_EQ(words(), kAsBefore);
}

TEST_F(BackgroundEnergyTest, the_original_is_recorded_first_and_comes_back_after_a_crash) {
  energy_.preferences.at(2) = *core::EnergyPreference::parse("96");
  start();
  decode_that_needs_it();
  const auto* entry = store_.ledger.find({LeverKind::energy_preference, "policy2"});
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(core::to_string(entry->original), "96");
  crash();
  start();
  EXPECT_EQ(energy_.of(2), "96");
  EXPECT_EQ(energy_.of(3), "balance_performance");
  EXPECT_EQ(store_.ledger.find({LeverKind::energy_preference, "policy2"}), nullptr);
}

TEST_F(BackgroundEnergyTest, nothing_is_written_that_cannot_be_recorded) {
  start();
  indexer();
  decode();
  run(3s, false);
  store_.fails = true;
  run(6s, true);
  EXPECT_THAT(energy_.log, IsEmpty());
}

TEST_F(BackgroundEnergyTest, two_share_it_and_the_last_one_restores) {
  start();
  const auto first = decode_that_needs_it();
  cures_ = false;
  const auto second = decode(101);
  run(3s, false);
  run_until([&] { return outcome(second, LeverKind::energy_preference) == Outcome::applied; },
            true);
  remove(first);
  EXPECT_EQ(words(), "balance_performance balance_performance power power");
  remove(second);
  EXPECT_EQ(words(), kAsBefore);
}

TEST_F(BackgroundEnergyTest, a_cpu_that_the_process_may_come_to_is_restored_by_the_next_scan) {
  start();
  decode_that_needs_it();
  world_.processes.at(kDecode).cpus = cpus({0, 1, 3});
  scan();
  EXPECT_EQ(words(), "balance_performance balance_performance power balance_performance");
}

TEST_F(BackgroundEnergyTest, a_cpu_of_a_process_that_comes_is_restored_at_once) {
  start();
  decode_that_needs_it();
  world_.add(300).cpus = cpus({2});
  added(300);
  EXPECT_EQ(words(), "balance_performance balance_performance balance_performance power");
}

TEST_F(BackgroundEnergyTest, a_process_that_cannot_be_looked_through_may_be_anywhere) {
  config_.limits.max_threads_per_process = 2;
  start();
  const auto id = decode_that_needs_it();
  for (int tid = 101; tid < 105; ++tid) world_.add_thread(kDecode, tid, 0);
  scan();
  EXPECT_EQ(words(), kAsBefore);
  run(1s, true);
  EXPECT_THAT(why(id), HasSubstr("AllowedCPUs="));
}

TEST_F(BackgroundEnergyTest, where_no_cpu_is_there_for_background_work_alone_it_says_what_to_do) {
  home_ = cpus({0, 1});
  start();
  const auto id = decode_in_vain();
  EXPECT_THAT(energy_.log, IsEmpty());
  EXPECT_EQ(outcome(id, LeverKind::energy_preference), Outcome::unsupported);
  EXPECT_THAT(why(id), HasSubstr("AllowedCPUs="));
  EXPECT_THAT(control(id)->why, HasSubstr("energy_preference cannot act"));
}

TEST_F(BackgroundEnergyTest, it_ends_when_the_background_work_does) {
  start();
  const auto id = decode_that_needs_it();
  world_.processes.at(kCrawler).asleep = true;
  run(1s, true);
  EXPECT_NE(words(), kAsBefore);
  run_until([&] { return words() == kAsBefore; }, true);
  run(1s, true);
  EXPECT_THAT(why(id), HasSubstr("no background process works"));
}

TEST_F(BackgroundEnergyTest, what_the_kernel_does_not_take_is_told_and_tried_again_later) {
  energy_.refusal = core::Error{core::ErrorCode::unsupported, "write", "policy2",
                                "the scaling governor is performance"};
  start();
  const auto id = decode_in_vain();
  EXPECT_EQ(words(), kAsBefore);
  EXPECT_EQ(outcome(id, LeverKind::energy_preference), Outcome::unsupported);
  EXPECT_THAT(why(id), HasSubstr("the scaling governor is performance"));
  EXPECT_EQ(store_.ledger.find({LeverKind::energy_preference, "policy2"}), nullptr);
  energy_.refusal.reset();
  run(config_.control.retry_after, false);
  run(6s, true);
  EXPECT_EQ(words(), "balance_performance balance_performance power power");
}

TEST_F(BackgroundEnergyTest, what_somebody_sets_meanwhile_is_theirs_as_long_as_it_is_asked_for) {
  start();
  const auto id = decode_that_needs_it();
  energy_.preferences.at(3) = EnergyWord::performance;
  run(40s, true);
  EXPECT_EQ(words(), "balance_performance balance_performance power performance");
  energy_.preferences.at(2) = EnergyWord::balance_power;
  run_until([&] { return outcome(id, LeverKind::energy_preference) == Outcome::contended; }, true);
  EXPECT_THAT(why(id), HasSubstr("somebody set it to"));
  remove(id);
  EXPECT_EQ(words(), "balance_performance balance_performance balance_power performance");
  remove(*background_);
  expect_clean();
}

TEST_F(BackgroundEnergyTest, a_profile_that_has_all_cpus_save_stays_in_force) {
  start();
  const auto id = decode_that_needs_it();
  energy_.preferences.at(0) = energy_.preferences.at(1) = EnergyWord::power;
  scan();
  remove(id);
  EXPECT_EQ(words(), "power power power power");
  remove(*background_);
  expect_clean();
}

TEST_F(BackgroundEnergyTest, a_cpu_that_goes_offline_is_restored_when_it_is_back) {
  start();
  const auto id = decode_that_needs_it();
  energy_.offline.insert(3);
  run(1s, true);
  EXPECT_EQ(lever(id, LeverKind::energy_preference)->target, "CPUs 2");
  remove(id);
  EXPECT_EQ(energy_.of(2), "balance_performance");
  EXPECT_EQ(energy_.of(3), "power");
  energy_.offline.clear();
  loop_.advance(2min);
  EXPECT_EQ(words(), kAsBefore);
  remove(*background_);
  expect_clean();
}

TEST_F(BackgroundEnergyTest, a_policy_that_vanishes_is_forgotten) {
  start();
  const auto id = decode_that_needs_it();
  energy_.preferences.erase(3);
  run(1s, true);
  remove(id);
  EXPECT_EQ(words(), "balance_performance balance_performance balance_performance");
  remove(*background_);
  expect_clean();
}

TEST_F(BackgroundEnergyTest, a_machine_without_preferences_says_so) {
  energy_.preferences.clear();
  energy_.preferences.emplace(2, EnergyWord::balance_performance);
  energy_.offline.insert(2);
  start();
  const auto id = decode_in_vain();
  EXPECT_EQ(outcome(id, LeverKind::energy_preference), Outcome::unsupported);
  EXPECT_THAT(why(id), HasSubstr("no energy performance preference"));
}

TEST_F(BackgroundEnergyTest, a_dry_run_says_what_it_would_do_and_does_nothing) {
  start(true);
  const auto id = decode_in_vain();
  EXPECT_THAT(energy_.log, IsEmpty());
  const auto status = lever(id, LeverKind::energy_preference);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->outcome, Outcome::dry_run);
  EXPECT_EQ(status->target, "CPUs 2-3");
  EXPECT_THAT(status->detail, HasSubstr("would be lowered"));
}

TEST_F(BackgroundEnergyTest, explain_tells_of_it) {
  start();
  decode_that_needs_it();
  const auto lines = service_->explain(pid_of(kDecode));
  const auto line = std::ranges::find(lines, "energy_preference", &ExplainLine::what);
  ASSERT_NE(line, lines.end());
  EXPECT_EQ(line->value, "power on CPUs 2-3");
}

}  // namespace
}  // namespace apusched::app
