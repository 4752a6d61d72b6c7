// SPDX-License-Identifier: MIT
#include "gpu_helper/probe_schedule.hpp"

#include <gtest/gtest.h>

namespace apusched::gpu_helper {
namespace {

using namespace std::chrono_literals;
using core::ProbeSource;
using ports::ProbeMode;
using TimePoint = ProbeSchedule::TimePoint;

const TimePoint kStart{1000s};

SetMode mode_of(ProbeMode mode, bool queue, bool kernel) {
  SetMode out;
  out.mode = mode;
  out.queue = queue;
  out.kernel = kernel;
  out.period = 50ms;
  out.burst_interval = 2s;
  out.burst_interval_max = 5s;
  out.burst_samples = 3;
  return out;
}

/// Takes every sample exactly when it is due, until none is due before `end`.
std::vector<std::chrono::milliseconds> times_until(ProbeSchedule& schedule, TimePoint end) {
  std::vector<std::chrono::milliseconds> out;
  while (schedule.next() && *schedule.next() < end) {
    const auto now = *schedule.next();
    EXPECT_TRUE(schedule.take(now));
    out.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(now - kStart));
  }
  return out;
}

TEST(ProbeSchedule, has_nothing_to_do_while_off) {
  ProbeSchedule schedule;
  EXPECT_FALSE(schedule.next());
  EXPECT_FALSE(schedule.take(kStart));
}

TEST(ProbeSchedule, samples_at_once_and_then_every_period) {
  ProbeSchedule schedule;
  schedule.configure(mode_of(ProbeMode::continuous, true, false), kStart);
  EXPECT_EQ(times_until(schedule, kStart + 160ms),
            (std::vector<std::chrono::milliseconds>{0ms, 50ms, 100ms, 150ms}));
}

TEST(ProbeSchedule, does_not_give_a_sample_before_its_time) {
  ProbeSchedule schedule;
  schedule.configure(mode_of(ProbeMode::continuous, true, false), kStart);
  ASSERT_TRUE(schedule.take(kStart));
  EXPECT_FALSE(schedule.take(kStart + 49ms));
  EXPECT_TRUE(schedule.take(kStart + 50ms));
}

TEST(ProbeSchedule, puts_two_sources_half_a_period_apart) {
  ProbeSchedule schedule;
  schedule.configure(mode_of(ProbeMode::continuous, true, true), kStart);
  EXPECT_EQ(schedule.take(kStart)->source, ProbeSource::queue);
  EXPECT_EQ(*schedule.next(), kStart + 25ms);
  EXPECT_EQ(schedule.take(kStart + 25ms)->source, ProbeSource::kernel);
  EXPECT_EQ(schedule.take(kStart + 50ms)->source, ProbeSource::queue);
}

TEST(ProbeSchedule, does_not_drift_when_samples_are_late) {
  ProbeSchedule schedule;
  schedule.configure(mode_of(ProbeMode::continuous, true, false), kStart);
  ASSERT_TRUE(schedule.take(kStart + 3ms));
  EXPECT_EQ(*schedule.next(), kStart + 50ms);
  ASSERT_TRUE(schedule.take(kStart + 99ms));
  EXPECT_EQ(*schedule.next(), kStart + 100ms);
}

TEST(ProbeSchedule, counts_missed_slots_and_does_not_make_up_for_them) {
  ProbeSchedule schedule;
  schedule.configure(mode_of(ProbeMode::continuous, true, false), kStart);
  ASSERT_EQ(schedule.take(kStart)->missed, 0U);
  EXPECT_EQ(schedule.take(kStart + 275ms)->missed, 4U);
  EXPECT_EQ(*schedule.next(), kStart + 300ms);
}

TEST(ProbeSchedule, doubles_the_gap_between_bursts_up_to_the_limit) {
  ProbeSchedule schedule;
  schedule.configure(mode_of(ProbeMode::burst, true, false), kStart);
  EXPECT_EQ(times_until(schedule, kStart + 12s),
            (std::vector<std::chrono::milliseconds>{0ms, 50ms, 100ms,              //
                                                    2100ms, 2150ms, 2200ms,        // after 2 s
                                                    6200ms, 6250ms, 6300ms,        // after 4 s
                                                    11300ms, 11350ms, 11400ms}));  // after 5 s
}

TEST(ProbeSchedule, takes_a_burst_of_each_source) {
  ProbeSchedule schedule;
  schedule.configure(mode_of(ProbeMode::burst, true, true), kStart);
  EXPECT_EQ(times_until(schedule, kStart + 1s).size(), 6U);
}

TEST(ProbeSchedule, starts_over_on_a_change_of_mode) {
  ProbeSchedule schedule;
  schedule.configure(mode_of(ProbeMode::burst, true, false), kStart);
  times_until(schedule, kStart + 12s);
  schedule.configure(mode_of(ProbeMode::continuous, true, false), kStart + 12s);
  schedule.configure(mode_of(ProbeMode::burst, true, false), kStart + 13s);
  EXPECT_EQ(times_until(schedule, kStart + 15500ms),
            (std::vector<std::chrono::milliseconds>{13000ms, 13050ms, 13100ms,  //
                                                    15100ms, 15150ms, 15200ms}));
}

TEST(ProbeSchedule, is_not_disturbed_by_the_same_mode_again) {
  ProbeSchedule schedule;
  const auto mode = mode_of(ProbeMode::burst, true, false);
  schedule.configure(mode, kStart);
  times_until(schedule, kStart + 1s);
  schedule.configure(mode, kStart + 1s);
  EXPECT_EQ(*schedule.next(), kStart + 2100ms);
}

TEST(ProbeSchedule, stops_when_switched_off) {
  ProbeSchedule schedule;
  schedule.configure(mode_of(ProbeMode::continuous, true, true), kStart);
  schedule.configure(SetMode{}, kStart + 1s);
  EXPECT_FALSE(schedule.next());
}

}  // namespace
}  // namespace apusched::gpu_helper
