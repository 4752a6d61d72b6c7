// SPDX-License-Identifier: MIT
#include "service_fixture.hpp"

namespace apusched::app {
namespace {

using Level = core::PerformanceLevel;

/// A process with GPU queues, whose probe takes 20 µs at the high level and `slower` times that
/// without.
class LevelControlTest : public ServiceTest {
 protected:
  core::RegistrationId engine(int pid) {
    world_.add(pid);
    topology_.queues.insert(pid);
    works(pid, true);
    return added(pid);
  }
  void works(int pid, bool does) { world_.processes.at(pid).per_look = does ? 100'000'000 : 1; }
  void run(std::chrono::milliseconds time) {
    for (auto left = time; left > 0ms; left -= 500ms) {
      const auto pci = topology_.gpus.front().pci;
      const auto latency = levels_.level == Level::high ? 20us : 20us * slower;
      for (int i = 0; timed && i < 5; ++i)
        helper_.events->on_sample(pci, {core::ProbeSource::kernel, false, latency});
      helper_.events->on_telemetry(pci, telemetry);
      loop_.advance(500ms);
      loop_.settle();
    }
  }

  ports::GpuTelemetry telemetry;
  int slower = 2;
  bool timed = true;
};

TEST_F(LevelControlTest, idle_processes_give_the_level_back_and_work_takes_it_again) {
  start();
  const auto id = engine(50);
  run(1s);
  EXPECT_EQ(levels_.level, Level::high);
  works(50, false);
  run(4s);
  EXPECT_EQ(levels_.level, Level::automatic);
  EXPECT_EQ(outcome(id, LeverKind::performance_level), Outcome::standby);
  EXPECT_EQ(lever(id, LeverKind::performance_level)->detail, "nothing works on the GPU");
  works(50, true);
  run(2s);
  EXPECT_EQ(levels_.level, Level::high);
  EXPECT_EQ(outcome(id, LeverKind::performance_level), Outcome::applied);
  remove(id);
  expect_clean();
}

TEST_F(LevelControlTest, a_busy_gpu_is_not_idle_while_its_process_sleeps) {
  start();
  engine(50);
  works(50, false);
  telemetry.busy_percent = 90;
  run(10s);
  EXPECT_EQ(levels_.level, Level::high);
}

TEST_F(LevelControlTest, a_level_that_makes_no_difference_is_left_off_and_history_says_so) {
  slower = 1;
  start();
  const auto id = engine(50);
  run(60s);
  EXPECT_EQ(levels_.level, Level::automatic);
  const auto lines = service_->history(100);
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back().lever, "performance_level");
  EXPECT_EQ(lines.back().what, "undone");
  remove(id);
  expect_clean();
}

TEST_F(LevelControlTest, a_level_that_helps_stays) {
  start();
  engine(50);
  run(60s);
  EXPECT_EQ(levels_.level, Level::high);
  EXPECT_EQ(service_->history(100).back().text, "the level pays");
}

TEST_F(LevelControlTest, a_hot_gpu_and_a_machine_that_saves_power_are_left_alone) {
  config_.control.max_celsius = core::Celsius::of<95>();
  start();
  engine(50);
  run(1s);
  telemetry.temperature_celsius = 96;
  run(1s);
  EXPECT_EQ(levels_.level, Level::automatic);
  telemetry.temperature_celsius = 80;
  run(1s);
  EXPECT_EQ(levels_.level, Level::high);
  power_.saves = true;
  run(6s);
  EXPECT_EQ(levels_.level, Level::automatic);
}

TEST_F(LevelControlTest, a_level_that_costs_nothing_is_held_by_idle_processes_too) {
  config_.profiles["llm-interactive"].performance_level = Level::low;
  start();
  engine(50);
  works(50, false);
  run(10s);
  EXPECT_EQ(levels_.level, Level::low);
}

TEST_F(LevelControlTest, the_end_of_an_idle_process_leaves_nothing) {
  start();
  engine(50);
  works(50, false);
  run(5s);
  exit(50);
  loop_.settle();
  EXPECT_EQ(levels_.level, Level::automatic);
  expect_clean();
}

}  // namespace
}  // namespace apusched::app
