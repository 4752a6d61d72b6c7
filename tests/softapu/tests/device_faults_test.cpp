// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "tests/fixtures.h"

namespace apusched::softapu {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class DeviceFaults : public testing::Test {
 protected:
  // 4 workgroups of 10 us on 4 units: ends 11 us after its launch.
  RunIndex launch(QueueIndex queue) { return *d_.model->launch(queue, {4, 10'000}, d_.now()); }
  bool ended(RunIndex run) { return d_.model->collect(run).has_value(); }
  void pass(Nanoseconds time) { d_.model->advance(d_.now() + time); }

  SmallDevice d_;
};

TEST_F(DeviceFaults, a_hang_stops_the_time_of_kernels_and_reads_busy) {
  const auto run = launch(d_.queue());
  pass(microseconds{6});
  d_.model->set_fault(Fault::hang, true, d_.now());
  EXPECT_FALSE(d_.model->expected_end(run).has_value());
  const auto busy = d_.state->busy_ns;
  pass(milliseconds{50});
  EXPECT_FALSE(ended(run));
  EXPECT_EQ(d_.state->busy_ns - busy, 50'000'000);
  d_.model->set_fault(Fault::hang, false, d_.now());
  EXPECT_EQ(d_.model->expected_end(run), d_.now() + microseconds{5});
  pass(microseconds{5});
  EXPECT_TRUE(ended(run));
}

TEST_F(DeviceFaults, a_kernel_without_work_hangs_too) {
  const auto run = *d_.model->launch(d_.queue(), {1, 0}, d_.now());
  d_.model->set_fault(Fault::hang, true, d_.now());
  pass(milliseconds{1});
  EXPECT_FALSE(ended(run));
  d_.model->set_fault(Fault::hang, false, d_.now());
  pass(microseconds{1});
  EXPECT_TRUE(ended(run));
}

TEST_F(DeviceFaults, a_stopped_queue_leaves_the_units_to_the_others) {
  const auto queue = d_.queue();
  const auto other = d_.queue();
  const auto stopped = launch(queue);
  const auto going = launch(other);
  EXPECT_TRUE(d_.model->stop_queue(100, 1, d_.now()));
  EXPECT_TRUE(d_.model->halted(queue));
  EXPECT_FALSE(d_.model->halted(other));
  pass(microseconds{11});
  EXPECT_TRUE(ended(going));
  EXPECT_FALSE(ended(stopped));
  d_.model->set_fault(Fault::stopped_queue, false, d_.now());
  pass(microseconds{10});
  EXPECT_TRUE(ended(stopped));
}

TEST_F(DeviceFaults, no_more_queues_stop_than_there_is_room_for) {
  for (std::uint32_t id = 0; id < 8; id++) EXPECT_TRUE(d_.model->stop_queue(100, id, d_.now()));
  EXPECT_FALSE(d_.model->stop_queue(100, 8, d_.now()));
  d_.model->set_fault(Fault::stopped_queue, false, d_.now());
  EXPECT_TRUE(d_.model->stop_queue(100, 8, d_.now()));
}

TEST_F(DeviceFaults, clients_are_lost_with_their_kernels_and_new_ones_are_not) {
  launch(d_.queue());
  d_.model->lose_clients(d_.now());
  EXPECT_EQ(d_.state->live_count, 0U);
  EXPECT_TRUE(d_.model->lost(d_.client));
  const auto fresh = *d_.model->add_client(200, d_.now());
  EXPECT_FALSE(d_.model->lost(fresh));
  const auto run = launch(d_.queue(fresh));
  pass(microseconds{11});
  EXPECT_TRUE(ended(run));
}

TEST_F(DeviceFaults, an_unfinished_reset_and_a_missing_device_halt_every_queue) {
  const auto queue = d_.queue();
  for (const Fault fault : {Fault::resetting, Fault::gone}) {
    d_.model->set_fault(fault, true, d_.now());
    EXPECT_TRUE(d_.model->halted(queue));
    d_.model->set_fault(fault, false, d_.now());
    EXPECT_FALSE(d_.model->halted(queue));
  }
  d_.model->set_fault(Fault::suspended, true, d_.now());
  EXPECT_FALSE(d_.model->halted(queue));
}

}  // namespace
}  // namespace apusched::softapu
