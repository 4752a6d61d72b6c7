// SPDX-License-Identifier: MIT
#include "queue/packet_processor.h"

#include <algorithm>
#include <cstring>

#include "queue/shared_word.h"

namespace apusched::softapu {
namespace {

std::uint64_t groups(std::uint64_t grid, std::uint64_t group) {
  return group == 0 ? 0 : (grid + group - 1) / group;
}

}  // namespace

std::uint64_t workgroup_count(const DispatchPacket& packet) {
  const unsigned dimensions = packet.setup & 3U;
  std::uint64_t count = groups(packet.grid_size_x, packet.workgroup_size_x);
  if (dimensions > 1) count *= groups(packet.grid_size_y, packet.workgroup_size_y);
  if (dimensions > 2) count *= groups(packet.grid_size_z, packet.workgroup_size_z);
  return dimensions == 0 ? 0 : count;
}

PacketProcessor::PacketProcessor(Ring ring, std::size_t max_in_flight, Executor& executor,
                                 SignalPort& signals, const KernelPort& kernels,
                                 QueueCounters& counters)
    : ring_(ring),
      max_in_flight_(max_in_flight),
      executor_(executor),
      signals_(signals),
      kernels_(kernels),
      counters_(counters) {}

bool PacketProcessor::ring_doorbell() {
  const std::uint64_t written =
      atomic_at(&ring_.queue->write_dispatch_id).load(std::memory_order_acquire);
  if (written <= limit_) return false;
  limit_ = written;
  counters_.submitted.store(limit_, std::memory_order_relaxed);
  return true;
}

void PacketProcessor::abandon() {
  failed_ = true;
  waits_for_signal_ = false;
  in_flight_.clear();
}

bool PacketProcessor::step(Nanoseconds now) {
  bool progressed = retire();
  while (!failed_ && take_next(now)) progressed = true;
  return progressed;
}

bool PacketProcessor::retire() {
  bool progressed = false;
  for (std::size_t i = 0; i < in_flight_.size();) {
    const auto times = executor_.collect(in_flight_[i].run);
    if (!times) {
      i++;
      continue;
    }
    const InFlight done = in_flight_[i];
    in_flight_.erase(in_flight_.begin() + static_cast<std::ptrdiff_t>(i));
    kernels_.perform(done.work, done.packet);
    complete(done.packet.completion_signal.handle, *times);
    progressed = true;
  }
  return progressed;
}

void PacketProcessor::complete(std::uint64_t signal, const RunTimes& times) {
  const bool profiling =
      (ring_.queue->queue_properties & AMD_QUEUE_PROPERTIES_ENABLE_PROFILING) != 0;
  // Counted before the client can know: a test that saw its signal must find the packet retired.
  counters_.retired.fetch_add(1, std::memory_order_release);
  signals_.complete(signal, profiling ? &times : nullptr);
}

void PacketProcessor::release_slot() {
  std::byte* packet = ring_.base + (next_ & (ring_.packets - 1)) * kPacketBytes;
  atomic_at(reinterpret_cast<volatile std::uint16_t*>(packet))
      .store(HSA_PACKET_TYPE_INVALID, std::memory_order_relaxed);
  next_++;
  counters_.launched.fetch_add(1, std::memory_order_relaxed);
  // The producer owns the slot from here on.
  atomic_at(&ring_.queue->read_dispatch_id).store(next_, std::memory_order_release);
}

bool PacketProcessor::take_next(Nanoseconds now) {
  waits_for_signal_ = false;
  if (next_ >= limit_) return false;
  std::byte* slot = ring_.base + (next_ & (ring_.packets - 1)) * kPacketBytes;
  const std::uint16_t header =
      atomic_at(reinterpret_cast<volatile std::uint16_t*>(slot)).load(std::memory_order_acquire);
  const unsigned type = packet_type(header);
  // Reserved but not written yet: its producer will ring when it is.
  if (type == HSA_PACKET_TYPE_INVALID) return false;
  if (has_barrier_bit(header) && in_flight()) return false;
  DispatchPacket packet;
  std::memcpy(&packet, slot, sizeof packet);
  switch (type) {
    case HSA_PACKET_TYPE_KERNEL_DISPATCH:
      return launch(packet);
    case HSA_PACKET_TYPE_BARRIER_AND:
    case HSA_PACKET_TYPE_BARRIER_OR: {
      std::uint64_t handles[5];
      std::memcpy(handles, slot + offsetof(hsa_barrier_and_packet_t, dep_signal), sizeof handles);
      waits_for_signal_ = !dependencies_met(handles, type == HSA_PACKET_TYPE_BARRIER_AND);
      if (waits_for_signal_) return false;
      counters_.barriers.fetch_add(1, std::memory_order_relaxed);
      break;
    }
    case HSA_PACKET_TYPE_VENDOR_SPECIFIC:
      break;  // PM4 indirect buffer: a cache flush, no effect
    default:
      fail(QueueError::packet_format);
      return false;
  }
  release_slot();
  // Every packet type keeps its completion signal last.
  complete(packet.completion_signal.handle, RunTimes{now, now});
  return true;
}

bool PacketProcessor::launch(const DispatchPacket& packet) {
  if (in_flight_.size() >= max_in_flight_) return false;
  if (workgroup_count(packet) == 0) {
    fail(QueueError::dispatch_dimensions);
    return false;
  }
  if (packet.kernel_object == 0) {
    fail(QueueError::code_object);
    return false;
  }
  const KernelWork work = kernels_.resolve(packet);
  if (work.effect == KernelEffect::unknown_blit) {
    fail(QueueError::code_object);
    return false;
  }
  const auto run = executor_.launch(work.cost);
  if (!run) return false;
  counters_.dispatches.fetch_add(1, std::memory_order_relaxed);
  if (in_flight()) counters_.overlapped.fetch_add(1, std::memory_order_relaxed);
  in_flight_.push_back({*run, packet, work});
  release_slot();
  return true;
}

bool PacketProcessor::dependencies_met(const std::uint64_t (&handles)[5], bool all) {
  std::size_t have = 0;
  std::size_t zero = 0;
  for (const std::uint64_t handle : handles) {
    if (handle == 0) continue;
    have++;
    if (signals_.load(handle) == 0) zero++;
  }
  return have == 0 || (all ? zero == have : zero > 0);
}

void PacketProcessor::fail(QueueError error) {
  failed_ = true;
  counters_.errors.fetch_add(1, std::memory_order_relaxed);
  signals_.raise(ring_.queue->queue_inactive_signal.handle, static_cast<std::int64_t>(error));
}

}  // namespace apusched::softapu
