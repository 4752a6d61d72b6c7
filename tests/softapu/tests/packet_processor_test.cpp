// SPDX-License-Identifier: MIT
#include "queue/packet_processor.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "tests/fixtures.h"

namespace apusched::softapu {
namespace {

using std::chrono::microseconds;

constexpr std::uint16_t header(unsigned type, bool barrier) {
  return static_cast<std::uint16_t>(type << HSA_PACKET_HEADER_TYPE |
                                    (barrier ? 1U : 0U) << HSA_PACKET_HEADER_BARRIER);
}

// A queue in plain memory, on the small device, in virtual time.
class PacketProcessorTest : public testing::Test,
                            public Executor,
                            public SignalPort,
                            public KernelPort {
 protected:
  PacketProcessorTest() {
    ring_.base = reinterpret_cast<std::byte*>(packets_.data());
    ring_.packets = packets_.size();
    ring_.queue = &amd_queue_;
    amd_queue_.queue_inactive_signal.handle = 99;
    for (auto& packet : packets_) packet.header = HSA_PACKET_TYPE_INVALID;
  }

  std::optional<RunIndex> launch(const KernelCost& cost) override {
    return device_.model->launch(queue_, cost, now_);
  }
  std::optional<RunTimes> collect(RunIndex run) override {
    device_.model->advance(now_);
    return device_.model->collect(run);
  }
  [[nodiscard]] std::int64_t load(std::uint64_t handle) const override {
    return signals_.at(handle);
  }
  void complete(std::uint64_t handle, const RunTimes* times) override {
    if (handle == 0) return;
    signals_[handle]--;
    completed_.push_back(handle);
    if (times != nullptr) times_[handle] = *times;
  }
  void raise(std::uint64_t handle, std::int64_t value) override { signals_[handle] = value; }
  [[nodiscard]] KernelWork resolve(const DispatchPacket& packet) const override {
    // 4 workgroups on 4 CUs: as long as the kernel object says, in microseconds.
    return {{4, static_cast<double>(packet.kernel_object) * 1000}, KernelEffect::none};
  }
  void perform(const KernelWork&, const DispatchPacket&) const override { performed_++; }

  DispatchPacket& reserve() {
    const std::uint64_t index = amd_queue_.write_dispatch_id;
    amd_queue_.write_dispatch_id = index + 1;
    return packets_[index % packets_.size()];
  }
  void dispatch(std::uint64_t us, std::uint64_t signal, bool barrier) {
    signals_[signal] = 1;
    DispatchPacket& packet = reserve();
    packet.setup = 1;
    packet.workgroup_size_x = 1;
    packet.grid_size_x = 4;
    packet.kernel_object = us;
    packet.completion_signal.handle = signal;
    packet.header = header(HSA_PACKET_TYPE_KERNEL_DISPATCH, barrier);
  }
  void barrier(unsigned type, std::vector<std::uint64_t> dependencies, std::uint64_t signal) {
    signals_[signal] = 1;
    hsa_barrier_and_packet_t packet{};
    for (std::size_t i = 0; i < dependencies.size(); i++)
      packet.dep_signal[i].handle = dependencies[i];
    packet.completion_signal.handle = signal;
    packet.header = header(type, true);
    std::memcpy(static_cast<void*>(&reserve()), &packet, sizeof packet);
  }
  void ring() { processor_.ring_doorbell(); }
  void run_until(microseconds end) {
    for (; now_ <= end; now_ += Nanoseconds{500})
      while (processor_.step(now_)) {
      }
  }

  SmallDevice device_;
  QueueIndex queue_ = device_.queue();
  Nanoseconds now_{0};
  amd_queue_t amd_queue_{};
  std::array<DispatchPacket, 8> packets_{};
  PacketProcessor::Ring ring_;
  QueueCounters counters_;
  std::map<std::uint64_t, std::int64_t> signals_;
  std::map<std::uint64_t, RunTimes> times_;
  std::vector<std::uint64_t> completed_;
  mutable int performed_ = 0;
  PacketProcessor processor_{
      {reinterpret_cast<std::byte*>(packets_.data()), packets_.size(), &amd_queue_},
      4,
      *this,
      *this,
      *this,
      counters_};
};

TEST_F(PacketProcessorTest, does_nothing_before_the_doorbell) {
  dispatch(10, 1, true);
  run_until(microseconds{50});
  EXPECT_EQ(amd_queue_.read_dispatch_id, 0U);
}

TEST_F(PacketProcessorTest, completes_a_dispatch_in_modelled_time) {
  amd_queue_.queue_properties = AMD_QUEUE_PROPERTIES_ENABLE_PROFILING;
  dispatch(10, 1, true);
  ring();
  run_until(microseconds{50});
  EXPECT_EQ(signals_[1], 0);
  EXPECT_EQ(times_[1].start, microseconds{1});
  EXPECT_EQ(times_[1].end, microseconds{11});
  EXPECT_EQ(performed_, 1);
}

TEST_F(PacketProcessorTest, ends_nothing_and_takes_nothing_once_abandoned) {
  dispatch(10, 1, true);
  ring();
  run_until(microseconds{5});
  processor_.abandon();
  dispatch(10, 2, true);
  ring();
  run_until(microseconds{50});
  EXPECT_FALSE(processor_.in_flight());
  EXPECT_TRUE(completed_.empty());
  EXPECT_EQ(signals_[1], 1);
  EXPECT_EQ(amd_queue_.read_dispatch_id, 1U);
}

TEST_F(PacketProcessorTest, writes_no_timestamps_without_profiling) {
  dispatch(10, 1, true);
  ring();
  run_until(microseconds{50});
  EXPECT_TRUE(times_.empty());
}

TEST_F(PacketProcessorTest, overlaps_dispatches_when_the_barrier_bit_is_clear) {
  amd_queue_.queue_properties = AMD_QUEUE_PROPERTIES_ENABLE_PROFILING;
  dispatch(20, 1, false);
  dispatch(20, 2, false);
  ring();
  run_until(microseconds{100});
  EXPECT_EQ(times_[1].end, microseconds{41});
  EXPECT_EQ(times_[2].start, times_[1].start);
  EXPECT_EQ(counters_.overlapped, 1U);
}

TEST_F(PacketProcessorTest, waits_for_all_before_a_packet_with_the_barrier_bit) {
  amd_queue_.queue_properties = AMD_QUEUE_PROPERTIES_ENABLE_PROFILING;
  dispatch(20, 1, false);
  dispatch(20, 2, true);
  ring();
  run_until(microseconds{100});
  EXPECT_GE(times_[2].start, times_[1].end);
  EXPECT_EQ(counters_.overlapped, 0U);
}

TEST_F(PacketProcessorTest, completes_overlapping_kernels_as_they_end) {
  dispatch(40, 1, false);
  dispatch(4, 2, false);
  ring();
  run_until(microseconds{100});
  EXPECT_EQ(completed_, (std::vector<std::uint64_t>{2, 1}));
}

TEST_F(PacketProcessorTest, frees_the_slot_at_launch) {
  dispatch(1000, 1, true);
  ring();
  run_until(microseconds{5});
  EXPECT_EQ(signals_[1], 1);
  EXPECT_EQ(amd_queue_.read_dispatch_id, 1U);
  EXPECT_EQ(packets_[0].header & 0xff, HSA_PACKET_TYPE_INVALID);
}

TEST_F(PacketProcessorTest, keeps_no_more_in_flight_than_allowed) {
  for (std::uint64_t i = 1; i <= 6; i++) dispatch(1000, i, false);
  ring();
  run_until(microseconds{5});
  EXPECT_EQ(amd_queue_.read_dispatch_id, 4U);
  run_until(microseconds{20'000});
  EXPECT_EQ(counters_.retired, 6U);
}

TEST_F(PacketProcessorTest, stops_at_a_packet_that_is_not_written_yet) {
  dispatch(1, 1, true);
  DispatchPacket& reserved = reserve();
  dispatch(1, 3, true);
  ring();
  run_until(microseconds{50});
  EXPECT_EQ(amd_queue_.read_dispatch_id, 1U);
  reserved = packets_[0];
  reserved.header = header(HSA_PACKET_TYPE_VENDOR_SPECIFIC, true);
  run_until(microseconds{100});
  EXPECT_EQ(amd_queue_.read_dispatch_id, 3U);
}

TEST_F(PacketProcessorTest, holds_everything_behind_a_barrier_whose_signals_are_not_zero) {
  signals_[50] = 1;
  signals_[51] = 0;
  barrier(HSA_PACKET_TYPE_BARRIER_AND, {50, 51}, 1);
  dispatch(1, 2, false);
  ring();
  run_until(microseconds{50});
  EXPECT_TRUE(processor_.waits_for_signal());
  EXPECT_TRUE(completed_.empty());
  signals_[50] = 0;
  run_until(microseconds{100});
  EXPECT_EQ(completed_, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_FALSE(processor_.waits_for_signal());
}

TEST_F(PacketProcessorTest, needs_one_signal_of_a_barrier_or) {
  signals_[50] = 1;
  signals_[51] = 1;
  barrier(HSA_PACKET_TYPE_BARRIER_OR, {50, 51}, 1);
  ring();
  run_until(microseconds{10});
  EXPECT_TRUE(completed_.empty());
  signals_[51] = 0;
  run_until(microseconds{20});
  EXPECT_EQ(completed_, (std::vector<std::uint64_t>{1}));
}

TEST_F(PacketProcessorTest, passes_barriers_without_signals) {
  barrier(HSA_PACKET_TYPE_BARRIER_AND, {}, 1);
  barrier(HSA_PACKET_TYPE_BARRIER_OR, {}, 2);
  ring();
  run_until(microseconds{10});
  EXPECT_EQ(counters_.retired, 2U);
  EXPECT_EQ(counters_.barriers, 2U);
}

TEST_F(PacketProcessorTest, reports_a_bad_packet_and_stops) {
  DispatchPacket& packet = reserve();
  packet.header = header(HSA_PACKET_TYPE_AGENT_DISPATCH, true);
  dispatch(1, 2, true);
  ring();
  run_until(microseconds{50});
  EXPECT_EQ(signals_[99], static_cast<std::int64_t>(QueueError::packet_format));
  EXPECT_EQ(signals_[2], 1);
}

TEST_F(PacketProcessorTest, reports_missing_sizes_and_kernels) {
  dispatch(0, 1, true);  // no kernel object
  ring();
  run_until(microseconds{5});
  EXPECT_EQ(signals_[99], static_cast<std::int64_t>(QueueError::code_object));
}

TEST_F(PacketProcessorTest, goes_round_the_ring) {
  for (std::uint64_t i = 1; i <= 40; i++) {
    dispatch(1, i, true);
    ring();
    run_until(now_.count() == 0
                  ? microseconds{20}
                  : std::chrono::duration_cast<microseconds>(now_) + microseconds{20});
    ASSERT_EQ(signals_[i], 0) << i;
  }
  EXPECT_EQ(amd_queue_.read_dispatch_id, 40U);
}

}  // namespace
}  // namespace apusched::softapu
