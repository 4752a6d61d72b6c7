// SPDX-License-Identifier: MIT
#include "core/gpu_load.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace apusched::core {
namespace {

using namespace std::chrono_literals;

/// A process as its agent reports it, ten times a second.
class Reports {
 public:
  /// `busy` of ten samples find packets, `waiting` in each of those; `taken` are fetched.
  void look(std::uint64_t busy, std::uint64_t waiting, std::uint64_t taken) {
    now_ += 100ms;
    report_.samples += 10;
    report_.busy_samples += busy;
    report_.backlog_sum += busy * waiting;
    report_.taken += taken;
    load.add(report_, now_);
  }
  void look_for(int looks, std::uint64_t busy, std::uint64_t waiting, std::uint64_t taken) {
    for (int i = 0; i < looks; ++i) look(busy, waiting, taken);
  }
  GpuLoad load;

 private:
  AgentReport report_;
  std::chrono::nanoseconds now_{1h};
};

TEST(GpuLoad, is_nothing_before_there_are_two_reports) {
  Reports process;
  process.look(10, 100, 100);
  EXPECT_EQ(process.load.busy(), 0);
  EXPECT_FALSE(process.load.task_length());
  EXPECT_FALSE(process.load.behind());
}

TEST(GpuLoad, follows_the_share_of_samples_that_found_work) {
  Reports process;
  process.look_for(30, 5, 1, 10);
  EXPECT_NEAR(process.load.busy(), 0.5, 0.01);
  process.look_for(30, 0, 0, 0);
  EXPECT_NEAR(process.load.busy(), 0, 0.01);
}

TEST(GpuLoad, of_a_program_that_stopped_fades) {
  Reports process;
  process.look_for(30, 10, 200, 100);
  EXPECT_TRUE(process.load.behind());
  for (int i = 0; i < 30; ++i) process.load.add_silence();
  EXPECT_NEAR(process.load.busy(), 0, 0.01);
  EXPECT_FALSE(process.load.behind());
}

TEST(GpuLoad, task_length_is_the_busy_share_of_the_time_over_the_packets_taken) {
  Reports process;
  process.look_for(2, 5, 1, 100);
  EXPECT_EQ(process.load.task_length(), 500us);
}

TEST(GpuLoad, task_length_outlives_a_pause) {
  Reports process;
  process.look_for(2, 5, 1, 100);
  process.look_for(20, 0, 0, 0);
  EXPECT_EQ(process.load.task_length(), 500us);
}

TEST(GpuLoad, counts_short_tasks_in_a_deep_queue_and_long_ones_in_a_short_queue_alike) {
  Reports deep;
  deep.look_for(30, 10, 100, 500);  // 100 of 0.2 ms
  EXPECT_TRUE(deep.load.behind());
  Reports shallow;
  shallow.look_for(30, 10, 1, 5);  // 1 of 20 ms
  EXPECT_TRUE(shallow.load.behind());
  Reports light;
  light.look_for(30, 10, 2, 500);  // 2 of 0.2 ms
  EXPECT_FALSE(light.load.behind());
}

TEST(GpuLoad, that_fell_behind_stays_so_until_a_good_part_is_done) {
  Reports process;
  process.look_for(30, 10, 60, 500);  // 12 ms of work
  ASSERT_TRUE(process.load.behind());
  process.look_for(30, 10, 35, 500);  // 7 ms
  EXPECT_TRUE(process.load.behind());
  process.look_for(30, 10, 10, 500);  // 2 ms
  EXPECT_FALSE(process.load.behind());
  process.look_for(30, 10, 35, 500);
  EXPECT_FALSE(process.load.behind());
}

}  // namespace
}  // namespace apusched::core
