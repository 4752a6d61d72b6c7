// SPDX-License-Identifier: MIT
#include "device/power.h"

#include <gtest/gtest.h>

#include "tests/fixtures.h"

namespace apusched::softapu {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

DeviceDescription with_power() {
  DeviceDescription d = small_device();
  d.allowed_levels = (1U << kLevels) - 1;
  d.power.idle_w = 4;
  d.power.gfx_w = 20;
  d.power.cpu_w = 20;
  d.power.tdp_w = 30;
  d.power.ambient_c = 40;
  d.power.c_per_w = 2;
  d.power.thermal_time_ms = 1000;
  return d;
}

class Power : public testing::Test {
 protected:
  // Keeps all units busy.
  void load(SmallDevice& d) {
    ASSERT_TRUE(d.model->launch(d.queue(), {1'000'000'000, 1'000'000}, d.now()));
  }
};

TEST_F(Power, follows_the_load) {
  SmallDevice d(Level::automatic, with_power());
  d.model->advance(seconds{1});
  EXPECT_DOUBLE_EQ(d.state->power_w, 4);
  load(d);
  d.model->advance(seconds{2});
  EXPECT_NEAR(d.state->power_w, 24, 0.01);
  EXPECT_EQ(d.model->sclk_mhz(), 1000U);
}

TEST_F(Power, costs_less_at_a_low_clock) {
  SmallDevice d(Level::low, with_power());
  load(d);
  d.model->advance(seconds{1});
  EXPECT_NEAR(d.state->power_w, 4 + 20 * (0.2 + 0.8 / 16), 0.01);
}

TEST_F(Power, of_busy_cpus_takes_clock_from_the_gpu) {
  SmallDevice d(Level::high, with_power());
  load(d);
  d.model->advance(seconds{1});
  EXPECT_EQ(d.model->sclk_mhz(), 1000U);
  EXPECT_EQ(d.state->throttled, 0U);
  d.model->set_cpu_load(1, seconds{1});
  d.model->advance(seconds{2});
  EXPECT_LT(d.model->sclk_mhz(), 800U);
  EXPECT_EQ(d.state->throttled, kThrottlePower);
  EXPECT_LE(d.state->power_w, 30.1);
  d.model->set_cpu_load(0, seconds{2});
  d.model->advance(seconds{3});
  EXPECT_EQ(d.model->sclk_mhz(), 1000U);
  EXPECT_EQ(d.state->throttled, 0U);
}

TEST_F(Power, makes_heat_that_settles) {
  SmallDevice d(Level::high, with_power());
  d.model->advance(seconds{1});
  EXPECT_DOUBLE_EQ(d.state->temperature_c, 40);
  load(d);
  d.model->advance(seconds{20});
  EXPECT_NEAR(d.state->temperature_c, 40 + 2 * 20, 0.5);
}

TEST_F(Power, is_cut_by_heat_at_the_limit_even_at_a_forced_level) {
  DeviceDescription hot = with_power();
  hot.power.limit_c = 60;
  SmallDevice d(Level::high, hot);
  load(d);
  d.model->advance(seconds{20});
  EXPECT_LT(d.model->sclk_mhz(), 1000U);
  EXPECT_NEAR(d.state->temperature_c, 60, 3);
  EXPECT_EQ(d.state->throttled, kThrottleHeat);
}

TEST_F(Power, lets_the_clock_rise_only_as_fast_as_the_ramp) {
  DeviceDescription slow = with_power();
  slow.power.ramp_mhz_per_ms = 50;
  SmallDevice d(Level::low, slow);
  load(d);
  d.model->advance(milliseconds{100});
  ASSERT_EQ(d.model->sclk_mhz(), 250U);
  d.model->set_level(Level::high, milliseconds{100});
  EXPECT_EQ(d.model->sclk_mhz(), 250U);
  d.model->advance(milliseconds{105});
  EXPECT_NEAR(d.model->sclk_mhz(), 500, 50);
  d.model->advance(milliseconds{130});
  EXPECT_EQ(d.model->sclk_mhz(), 1000U);
}

TEST_F(Power, has_settled_when_clock_and_heat_are_where_they_end) {
  SmallDevice d(Level::automatic, with_power());
  d.model->advance(seconds{1});
  EXPECT_TRUE(settled(*d.state));
  const auto run = d.model->launch(d.queue(), {4, 500'000'000}, d.now());
  EXPECT_FALSE(settled(*d.state));
  d.model->advance(seconds{3});
  ASSERT_TRUE(d.model->collect(*run));
  EXPECT_FALSE(settled(*d.state)) << "warm";
  d.model->advance(seconds{20});
  EXPECT_TRUE(settled(*d.state));
  d.state->busy_percent = 3;
  EXPECT_FALSE(settled(*d.state)) << "the last window's load is still shown";
}

class GfxOff : public Power {
 protected:
  static DeviceDescription described(bool queues_forbid) {
    DeviceDescription d = with_power();
    d.power.gfxoff_after_us = 100'000;
    d.power.gfxoff_wake_us = 200;
    d.power.queues_forbid_gfxoff = queues_forbid ? 1 : 0;
    return d;
  }
  static Nanoseconds start_of_a_launch_at(SmallDevice& d, QueueIndex queue, Nanoseconds at) {
    const auto run = d.model->launch(queue, {4, 10'000}, at);
    d.model->advance(at + milliseconds{10});
    return d.model->collect(*run).value_or(RunTimes{}).start;
  }
};

TEST_F(GfxOff, delays_the_first_launch_after_a_pause) {
  SmallDevice d(Level::high, described(false));
  const QueueIndex queue = d.queue();
  EXPECT_EQ(start_of_a_launch_at(d, queue, seconds{1}), seconds{1} + microseconds{1 + 200});
  EXPECT_EQ(start_of_a_launch_at(d, queue, milliseconds{1050}),
            milliseconds{1050} + microseconds{1})
      << "within 100 ms";
  EXPECT_EQ(start_of_a_launch_at(d, queue, seconds{2}), seconds{2} + microseconds{1 + 200});
  EXPECT_EQ(d.state->gfxoff_entries, 2U);
}

TEST_F(GfxOff, waits_for_the_last_queue_where_queues_forbid_it) {
  SmallDevice d(Level::high, described(true));
  const QueueIndex queue = d.queue();
  EXPECT_EQ(start_of_a_launch_at(d, queue, seconds{1}), seconds{1} + microseconds{1});
  d.model->remove_queue(queue, seconds{2});
  d.model->advance(seconds{3});
  EXPECT_EQ(d.state->gfx_off, 1U);
}

TEST_F(GfxOff, has_to_be_reached_before_all_has_settled) {
  SmallDevice d(Level::automatic, described(false));
  d.queue();
  d.model->advance(milliseconds{50});
  EXPECT_FALSE(settled(*d.state));
  d.model->advance(milliseconds{150});
  EXPECT_TRUE(settled(*d.state));
}

TEST_F(GfxOff, is_forbidden_by_profile_levels) {
  SmallDevice d(Level::profile_standard, described(false));
  d.model->advance(hours{1});
  EXPECT_EQ(d.state->gfx_off, 0U);
}

TEST(PinnedClock, needs_queues_of_two_processes_and_the_quirk) {
  DeviceDescription quirky = with_power();
  quirky.power.two_clients_pin_clock = 1;
  SmallDevice d(Level::automatic, quirky);
  const QueueIndex first = d.queue();
  d.queue();
  d.model->advance(seconds{1});
  EXPECT_EQ(d.model->sclk_mhz(), 250U) << "two queues of one process";
  const ClientIndex other = *d.model->add_client(101, seconds{1});
  d.queue(other);
  d.model->advance(seconds{2});
  EXPECT_EQ(d.model->sclk_mhz(), 1000U);
  EXPECT_NEAR(d.state->power_w, 24, 0.01) << "although nothing runs";
  d.model->remove_client(other, seconds{2});
  d.model->advance(seconds{3});
  EXPECT_EQ(d.model->sclk_mhz(), 250U);
  EXPECT_EQ(static_cast<unsigned>(first), 0U);
}

TEST(ProfileExit, goes_back_to_the_level_before_the_profile) {
  SmallDevice d(Level::low, with_power());
  EXPECT_FALSE(d.model->set_level(Level::profile_exit, seconds{1})) << "no profile to leave";
  EXPECT_TRUE(d.model->set_level(Level::profile_peak, seconds{1}));
  EXPECT_TRUE(d.model->set_level(Level::profile_standard, seconds{1}));
  EXPECT_TRUE(d.model->set_level(Level::profile_exit, seconds{1}));
  EXPECT_EQ(d.state->level, Level::low);
}

}  // namespace
}  // namespace apusched::softapu
