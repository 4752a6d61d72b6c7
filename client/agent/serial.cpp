// SPDX-License-Identifier: MIT
#include "agent/serial.hpp"

#include <cstring>
#include <new>

namespace apusched::agent {
namespace {

constexpr std::uint16_t kBarrier = 1U << HSA_PACKET_HEADER_BARRIER;
constexpr std::uint64_t kOnStack = 8;

struct Packet {
  std::uint16_t header;
  unsigned char rest[62];
};
static_assert(sizeof(Packet) == 64);

bool to_serialize(std::uint16_t header) {
  const unsigned type =
      header >> HSA_PACKET_HEADER_TYPE & ((1U << HSA_PACKET_HEADER_WIDTH_TYPE) - 1);
  return (header & kBarrier) == 0 &&
         (type == HSA_PACKET_TYPE_KERNEL_DISPATCH || type == HSA_PACKET_TYPE_BARRIER_AND ||
          type == HSA_PACKET_TYPE_BARRIER_OR);
}

bool any_to_serialize(const Packet* packets, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; i++)
    if (to_serialize(packets[i].header)) return true;
  return false;
}

void copy_serialized(const Packet* packets, std::uint64_t count, Packet* copies) {
  std::memcpy(copies, packets, count * sizeof(Packet));
  for (std::uint64_t i = 0; i < count; i++)
    if (to_serialize(copies[i].header))
      copies[i].header = static_cast<std::uint16_t>(copies[i].header | kBarrier);
}

}  // namespace

void serialize(const void* packets, std::uint64_t count, std::uint64_t, void* data,
               hsa_amd_queue_intercept_packet_writer writer) {
  const auto* given = static_cast<const Packet*>(packets);
  const auto* on = static_cast<const std::atomic<bool>*>(data);
  if (!on->load(std::memory_order_relaxed) || !any_to_serialize(given, count)) {
    writer(packets, count);
    return;
  }
  // The writer goes to the next handler and must be called once, with all packets. What it is given
  // is not ours to change: it may be another handler's constant.
  if (count <= kOnStack) {
    alignas(64) Packet copies[kOnStack];
    copy_serialized(given, count, copies);
    writer(copies, count);
    return;
  }
  auto* copies = new (std::nothrow) Packet[count];
  if (copies != nullptr) copy_serialized(given, count, copies);
  writer(copies != nullptr ? copies : given, count);
  delete[] copies;
}

}  // namespace apusched::agent
