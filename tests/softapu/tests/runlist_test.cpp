// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "tests/fixtures.h"

namespace apusched::softapu {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

DeviceDescription with_slots(std::uint32_t slots) {
  DeviceDescription d = small_device();
  d.num_cp_queues = slots;
  d.queue_quantum_us = 1000;
  return d;
}

class Runlist : public testing::Test {
 protected:
  // Of 4 units for `time`, from now on.
  static RunIndex launch(SmallDevice& d, QueueIndex queue, microseconds time) {
    const auto groups = static_cast<std::uint64_t>(time.count()) * 4 / 10;
    return *d.model->launch(queue, {groups, 10'000}, d.now());
  }
  static RunTimes times(SmallDevice& d, RunIndex run) {
    d.model->advance(std::chrono::seconds{10});
    const auto t = d.model->collect(run);
    EXPECT_TRUE(t.has_value());
    return t.value_or(RunTimes{});
  }
};

TEST_F(Runlist, maps_all_queues_while_there_are_slots) {
  SmallDevice d(Level::high, with_slots(2));
  const auto a = launch(d, d.queue(), milliseconds{2});
  const auto b = launch(d, d.queue(), milliseconds{2});
  EXPECT_EQ(times(d, a).end, microseconds{4001});
  EXPECT_EQ(times(d, b).end, microseconds{4001});
}

TEST_F(Runlist, works_off_more_queues_in_turns_of_a_quantum) {
  SmallDevice d(Level::high, with_slots(1));
  const auto a = launch(d, d.queue(), milliseconds{2});
  const auto b = launch(d, d.queue(), milliseconds{2});
  const RunTimes first = times(d, a);
  const RunTimes second = times(d, b);
  EXPECT_EQ(first.start, microseconds{1});
  EXPECT_EQ(second.start, milliseconds{1}) << "in its turn";
  EXPECT_EQ(second.end, milliseconds{4}) << "of the 2nd and the 4th quantum it used all";
  EXPECT_EQ(first.end, microseconds{4001}) << "its overhead of 1 us was part of its first quantum";
}

TEST_F(Runlist, gives_no_turn_to_idle_queues) {
  SmallDevice d(Level::high, with_slots(1));
  for (int i = 0; i < 5; i++) d.queue();
  EXPECT_EQ(times(d, launch(d, d.queue(), milliseconds{2})).end, microseconds{2001});
}

TEST_F(Runlist, says_when_to_look_again_at_a_queue_without_its_turn) {
  SmallDevice d(Level::high, with_slots(1));
  launch(d, d.queue(), milliseconds{5});
  const auto b = launch(d, d.queue(), milliseconds{5});
  d.model->advance(microseconds{500});
  EXPECT_EQ(d.model->expected_end(b), milliseconds{1});
}

TEST_F(Runlist, is_short_again_when_a_queue_is_gone) {
  SmallDevice d(Level::high, with_slots(1));
  const QueueIndex idle = d.queue();
  const QueueIndex queue = d.queue();
  d.model->remove_queue(idle, d.now());
  EXPECT_EQ(d.state->queue_count, 1U);
  EXPECT_EQ(times(d, launch(d, queue, milliseconds{2})).end, microseconds{2001});
}

class Remap : public Runlist {
 protected:
  static DeviceDescription described(bool mes) {
    DeviceDescription d = small_device();
    d.remap_us = 50;
    d.mes = mes ? 1 : 0;
    return d;
  }
};

TEST_F(Remap, stops_the_queues_of_everybody_under_the_hardware_scheduler) {
  SmallDevice d(Level::high, described(false));
  const QueueIndex changed = d.queue();
  const auto a = launch(d, d.queue(), milliseconds{1});
  d.model->set_priority(changed, 1, 100, microseconds{500});
  EXPECT_EQ(times(d, a).end, microseconds{1051});
}

TEST_F(Remap, stops_only_the_changed_queue_under_mes) {
  SmallDevice d(Level::high, described(true));
  const QueueIndex changed = d.queue();
  const QueueIndex other = d.queue();
  CuMask half;
  half.set(0);
  half.set(1);
  CuMask rest;
  rest.set(2);
  rest.set(3);
  d.model->set_mask(changed, half, microseconds{0});
  d.model->set_mask(other, rest, microseconds{0});
  d.model->advance(microseconds{100});
  const auto a = launch(d, changed, milliseconds{1});
  const auto b = launch(d, other, milliseconds{1});
  d.model->set_mask(changed, half, microseconds{500});
  EXPECT_EQ(times(d, a).end, microseconds{101 + 2000 + 50});
  EXPECT_EQ(times(d, b).end, microseconds{101 + 2000});
}

class Priorities : public Runlist {
 protected:
  // Progress of a kernel of 10 ms that competes with one of another process, after 10 ms.
  static double share_of_high(bool mes, bool same_process) {
    SmallDevice d(Level::high, described(mes));
    const ClientIndex other = *d.model->add_client(101, d.now());
    const QueueIndex high = d.queue();
    const QueueIndex low = same_process ? d.queue() : d.queue(other);
    d.model->set_priority(high, 1, 100, d.now());
    d.model->set_priority(low, 0, 100, d.now());
    const auto run = launch(d, high, milliseconds{10});
    launch(d, low, milliseconds{100});
    const RunTimes t = times(d, run);
    return 10.0 / std::chrono::duration<double, std::milli>(t.end - t.start).count();
  }
  static DeviceDescription described(bool mes) {
    DeviceDescription d = small_device();
    d.mes = mes ? 1 : 0;
    return d;
  }
};

TEST_F(Priorities, count_between_processes_under_the_hardware_scheduler) {
  EXPECT_NEAR(share_of_high(false, false), 2.0 / 3, 0.001);
  EXPECT_NEAR(share_of_high(false, true), 2.0 / 3, 0.001);
}

TEST_F(Priorities, count_only_within_one_process_under_mes) {
  EXPECT_NEAR(share_of_high(true, true), 2.0 / 3, 0.001);
  EXPECT_NEAR(share_of_high(true, false), 1.0 / 2, 0.001);
}

}  // namespace
}  // namespace apusched::softapu
