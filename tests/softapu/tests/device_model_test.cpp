// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "tests/fixtures.h"

namespace apusched::softapu {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

CuMask mask_of(std::initializer_list<std::size_t> cus) {
  CuMask mask;
  for (const std::size_t cu : cus) mask.set(cu);
  return mask;
}

RunTimes run_to_end(DeviceModel& model, RunIndex run, Nanoseconds at) {
  model.advance(at);
  const auto times = model.collect(run);
  EXPECT_TRUE(times.has_value());
  return times.value_or(RunTimes{});
}

TEST(DeviceModel, spreads_workgroups_over_all_compute_units) {
  SmallDevice d;
  const auto run = d.model->launch(d.queue(), {8, 10'000}, Nanoseconds{0});
  const RunTimes times = run_to_end(*d.model, *run, milliseconds{1});
  EXPECT_EQ(times.start, microseconds{1});
  EXPECT_EQ(times.end, microseconds{21});
}

TEST(DeviceModel, gives_a_kernel_no_more_compute_units_than_workgroups) {
  SmallDevice d;
  const auto run = d.model->launch(d.queue(), {1, 10'000}, Nanoseconds{0});
  EXPECT_EQ(run_to_end(*d.model, *run, milliseconds{1}).end, microseconds{11});
}

TEST(DeviceModel, ends_kernels_at_their_own_time_however_late_it_is_asked) {
  SmallDevice d;
  const auto run = d.model->launch(d.queue(), {4, 10'000}, Nanoseconds{0});
  EXPECT_EQ(run_to_end(*d.model, *run, std::chrono::hours{1}).end, microseconds{11});
}

TEST(DeviceModel, does_not_hand_out_a_kernel_that_still_runs) {
  SmallDevice d;
  const auto run = d.model->launch(d.queue(), {4, 10'000}, Nanoseconds{0});
  d.model->advance(microseconds{10});
  EXPECT_FALSE(d.model->collect(*run).has_value());
  EXPECT_EQ(d.model->expected_end(*run), microseconds{11});
}

TEST(DeviceModel, shares_compute_units_between_kernels) {
  SmallDevice d;
  const auto a = d.model->launch(d.queue(), {4, 10'000}, Nanoseconds{0});
  const auto b = d.model->launch(d.queue(), {4, 10'000}, Nanoseconds{0});
  EXPECT_EQ(run_to_end(*d.model, *a, milliseconds{1}).end, microseconds{21});
  EXPECT_EQ(run_to_end(*d.model, *b, milliseconds{1}).end, microseconds{21});
}

TEST(DeviceModel, keeps_masked_queues_apart) {
  SmallDevice d;
  const QueueIndex left = d.queue();
  const QueueIndex right = d.queue();
  d.model->set_mask(left, mask_of({0, 1}), Nanoseconds{0});
  d.model->set_mask(right, mask_of({2, 3}), Nanoseconds{0});
  const auto a = d.model->launch(left, {2, 10'000}, Nanoseconds{0});
  const auto b = d.model->launch(right, {8, 10'000}, Nanoseconds{0});
  EXPECT_EQ(run_to_end(*d.model, *a, milliseconds{1}).end, microseconds{11});
  EXPECT_EQ(run_to_end(*d.model, *b, milliseconds{1}).end, microseconds{41});
}

TEST(DeviceModel, applies_a_mask_to_a_kernel_that_runs) {
  SmallDevice d;
  const QueueIndex queue = d.queue();
  const auto run = d.model->launch(queue, {4, 10'000}, Nanoseconds{0});
  d.model->set_mask(queue, mask_of({0}), microseconds{6});
  EXPECT_EQ(run_to_end(*d.model, *run, milliseconds{1}).end, microseconds{26});
}

class FullUnits : public testing::Test {
 protected:
  static DeviceDescription with_slots() {
    DeviceDescription d = small_device();
    d.wave_slots_per_cu = 2;
    return d;
  }
  SmallDevice d{Level::high, with_slots()};
  // Fills all 4 units until 1 ms: 400 workgroups of 10 us.
  RunIndex background = *d.model->launch(d.queue(), {400, 10'000}, Nanoseconds{0});
};

TEST_F(FullUnits, let_a_kernel_in_when_a_workgroup_ends) {
  const auto run = d.model->launch(d.queue(), {4, 2'000}, microseconds{50});
  d.model->advance(microseconds{55});
  EXPECT_EQ(d.model->expected_end(*run), microseconds{51 + 10}) << "look again when there is room";
  EXPECT_EQ(run_to_end(*d.model, *run, milliseconds{2}).end, microseconds{51 + 10 + 4})
      << "then on half of each unit";
  EXPECT_EQ(run_to_end(*d.model, background, milliseconds{2}).end, microseconds{1001 + 2});
}

TEST_F(FullUnits, do_not_delay_a_kernel_that_has_others) {
  CuMask half = mask_of({0, 1});
  SmallDevice other{Level::high, with_slots()};
  const QueueIndex queue = other.queue();
  other.model->set_mask(queue, half, Nanoseconds{0});
  ASSERT_TRUE(other.model->launch(queue, {400, 10'000}, Nanoseconds{0}));
  const QueueIndex critical = other.queue();
  other.model->set_mask(critical, mask_of({2, 3}), Nanoseconds{0});
  const auto run = other.model->launch(critical, {4, 2'000}, microseconds{50});
  EXPECT_EQ(run_to_end(*other.model, *run, milliseconds{2}).end, microseconds{51 + 4});
}

TEST_F(FullUnits, have_room_at_once_when_the_last_workgroups_run) {
  const auto run = d.model->launch(d.queue(), {4, 2'000}, microseconds{990});
  EXPECT_EQ(run_to_end(*d.model, *run, milliseconds{2}).end, microseconds{991 + 4});
}

TEST(DeviceModel, never_ends_a_kernel_without_compute_units) {
  SmallDevice d;
  const QueueIndex queue = d.queue();
  d.model->set_mask(queue, CuMask{}, Nanoseconds{0});
  const auto run = d.model->launch(queue, {4, 10'000}, Nanoseconds{0});
  d.model->advance(std::chrono::seconds{1});
  EXPECT_FALSE(d.model->collect(*run).has_value());
  EXPECT_FALSE(d.model->expected_end(*run).has_value());
}

TEST(DeviceModel, prefers_queues_of_higher_priority) {
  SmallDevice d;
  const QueueIndex high = d.queue();
  const QueueIndex normal = d.queue();
  d.model->set_priority(high, 2, 100, Nanoseconds{0});
  const auto a = d.model->launch(high, {4, 8'000}, Nanoseconds{0});
  const auto b = d.model->launch(normal, {4, 8'000}, Nanoseconds{0});
  EXPECT_EQ(run_to_end(*d.model, *a, milliseconds{1}).end, microseconds{11});
  EXPECT_EQ(run_to_end(*d.model, *b, milliseconds{1}).end, microseconds{17});
}

TEST(DeviceModel, is_slower_at_level_low_by_the_ratio_of_clocks) {
  SmallDevice d(Level::low);
  EXPECT_EQ(d.model->sclk_mhz(), 250U);
  const auto run = d.model->launch(d.queue(), {4, 10'000}, Nanoseconds{0});
  EXPECT_EQ(run_to_end(*d.model, *run, milliseconds{1}).end, microseconds{41});
}

TEST(DeviceModel, changes_the_clock_of_a_running_kernel) {
  SmallDevice d(Level::low);
  const auto run = d.model->launch(d.queue(), {4, 10'000}, Nanoseconds{0});
  EXPECT_TRUE(d.model->set_level(Level::high, microseconds{21}));
  EXPECT_EQ(run_to_end(*d.model, *run, milliseconds{1}).end, microseconds{26});
}

TEST(DeviceModel, refuses_levels_that_the_chip_does_not_know) {
  SmallDevice d;
  EXPECT_FALSE(d.model->set_level(Level::profile_peak, Nanoseconds{0}));
  EXPECT_EQ(d.state->level, Level::high);
}

TEST(DeviceModel, ramps_with_the_load_at_level_auto) {
  SmallDevice d(Level::automatic);
  EXPECT_EQ(d.model->sclk_mhz(), 250U);
  const auto run = d.model->launch(d.queue(), {4, 1e9}, Nanoseconds{0});
  d.model->advance(milliseconds{100});
  EXPECT_EQ(d.model->sclk_mhz(), 1000U);
  EXPECT_FALSE(d.model->collect(*run).has_value());
}

TEST(DeviceModel, comes_down_again_when_idle) {
  SmallDevice d(Level::automatic);
  const QueueIndex queue = d.queue();
  d.model->launch(queue, {4, 1e9}, Nanoseconds{0});
  d.model->advance(milliseconds{100});
  d.model->remove_queue(queue, milliseconds{100});
  d.model->advance(milliseconds{300});
  EXPECT_EQ(d.model->sclk_mhz(), 250U);
  EXPECT_LT(d.state->load, 0.01);
}

TEST(DeviceModel, gives_the_same_result_however_often_it_is_advanced) {
  SmallDevice coarse(Level::automatic);
  SmallDevice fine(Level::automatic);
  const auto a = coarse.model->launch(coarse.queue(), {40, 1e6}, Nanoseconds{0});
  const auto b = fine.model->launch(fine.queue(), {40, 1e6}, Nanoseconds{0});
  for (int us = 0; us < 100'000; us += 37) fine.model->advance(microseconds{us});
  const auto end = run_to_end(*coarse.model, *a, std::chrono::seconds{1}).end;
  // Every look rounds a kernel's rest to the nanosecond at most.
  EXPECT_NEAR(static_cast<double>(run_to_end(*fine.model, *b, std::chrono::seconds{1}).end.count()),
              static_cast<double>(end.count()), 10'000.0);
}

TEST(DeviceModel, counts_busy_time_once_for_overlapping_kernels) {
  SmallDevice d;
  d.model->launch(d.queue(), {4, 10'000}, Nanoseconds{0});
  d.model->launch(d.queue(), {4, 10'000}, Nanoseconds{0});
  d.model->advance(milliseconds{1});
  EXPECT_EQ(d.state->busy_ns, 20'000);
}

TEST(DeviceModel, tells_the_other_client_when_its_kernels_speed_up) {
  SmallDevice d;
  const ClientIndex other = *d.model->add_client(200, Nanoseconds{0});
  d.model->launch(d.queue(), {4, 10'000}, Nanoseconds{0});
  d.model->launch(d.queue(other), {4, 100'000}, Nanoseconds{0});
  d.observer.told.clear();
  d.model->advance(microseconds{22});
  ASSERT_FALSE(d.observer.told.empty());
  EXPECT_EQ(d.observer.told.back(), other);
}

TEST(DeviceModel, keeps_nothing_of_a_client_that_was_removed) {
  SmallDevice d;
  const ClientIndex other = *d.model->add_client(200, Nanoseconds{0});
  const auto survivor = d.model->launch(d.queue(), {4, 10'000}, Nanoseconds{0});
  d.model->launch(d.queue(other), {4, 1e9}, Nanoseconds{0});
  d.state->clients[static_cast<std::size_t>(other)].vram_used = 4096;
  d.model->remove_client(other, microseconds{11});
  EXPECT_EQ(run_to_end(*d.model, *survivor, milliseconds{1}).end, microseconds{16});
  EXPECT_EQ(d.state->live_count, 0U);
  EXPECT_EQ(d.state->clients[static_cast<std::size_t>(other)].pid, 0U);
  EXPECT_EQ(d.state->clients[static_cast<std::size_t>(other)].vram_used, 0U);
}

TEST(DeviceModel, runs_out_of_clients_and_queues_politely) {
  SmallDevice d;
  for (std::size_t i = 1; i < kMaxClients; i++)
    EXPECT_TRUE(d.model->add_client(1000, Nanoseconds{0}).has_value());
  EXPECT_FALSE(d.model->add_client(1000, Nanoseconds{0}).has_value());
  for (std::size_t i = 0; i < kMaxQueues; i++) d.queue();
  EXPECT_FALSE(d.model->add_queue(d.client, {}, Nanoseconds{0}).has_value());
}

TEST(DeviceModel, ignores_a_clock_that_goes_back) {
  SmallDevice d;
  d.model->advance(milliseconds{1});
  d.model->advance(microseconds{1});
  EXPECT_EQ(d.now(), milliseconds{1});
}

TEST(Levels, are_read_as_sysfs_reads_them) {
  EXPECT_EQ(parse_level("high\n"), Level::high);
  EXPECT_EQ(parse_level("profile_min_sclk"), Level::profile_min_sclk);
  for (const char* bad : {"", "\n", "High", "high ", "hi", "highest", "high\n\n", "turbo"})
    EXPECT_FALSE(parse_level(bad).has_value()) << bad;
}

TEST(Levels, are_found_when_written_over_a_longer_word) {
  EXPECT_EQ(parse_level_written_over("lowo\n", Level::automatic), Level::low);
  EXPECT_EQ(parse_level_written_over("low\nal\n", Level::manual), Level::low);
  EXPECT_EQ(parse_level_written_over("profile_peakdard\n", Level::profile_standard),
            Level::profile_peak);
  EXPECT_EQ(parse_level_written_over("manual", Level::low), Level::manual);
  for (const char* bad : {"xxto\n", "lowx\n", "lowto\n", "", "high low"})
    EXPECT_FALSE(parse_level_written_over(bad, Level::automatic).has_value()) << bad;
}

}  // namespace
}  // namespace apusched::softapu
