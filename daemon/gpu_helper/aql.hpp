// SPDX-License-Identifier: MIT
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <cstring>

/// The two packets of the probe and their submission. The header word is stored last, with
/// release, then the doorbell rings: the command processor may read a slot as soon as its header
/// is valid (HSA Runtime Specification 1.2, 2.9 "AQL packets").
namespace apusched::gpu_helper {

inline constexpr std::size_t kPacketSize = 64;

/// First 32 bits of a packet: header, and the setup field that follows it.
[[nodiscard]] constexpr std::uint32_t packet_head(unsigned type, std::uint16_t setup) {
  // No fences: the probe touches no memory, and a cache flush would be measured instead.
  const unsigned header = (type << HSA_PACKET_HEADER_TYPE) | (1U << HSA_PACKET_HEADER_BARRIER) |
                          (HSA_FENCE_SCOPE_NONE << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE) |
                          (HSA_FENCE_SCOPE_NONE << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
  return header | (static_cast<std::uint32_t>(setup) << 16U);
}

[[nodiscard]] inline hsa_barrier_and_packet_t barrier_packet(hsa_signal_t completion) {
  hsa_barrier_and_packet_t packet{};
  packet.completion_signal = completion;
  return packet;
}

[[nodiscard]] inline hsa_kernel_dispatch_packet_t noop_packet(std::uint64_t kernel_object,
                                                              hsa_signal_t completion) {
  hsa_kernel_dispatch_packet_t packet{};
  packet.workgroup_size_x = packet.workgroup_size_y = packet.workgroup_size_z = 1;
  packet.grid_size_x = packet.grid_size_y = packet.grid_size_z = 1;
  packet.kernel_object = kernel_object;
  packet.completion_signal = completion;
  return packet;
}

/// Writes one packet into a queue with a single producer and a free slot, and rings.
/// `before_ring` is called between the body and the header: what a latency starts from.
template <typename Packet, typename BeforeRing>
inline void submit(hsa_queue_t* queue, const Packet& packet, std::uint32_t head,
                   BeforeRing&& before_ring) {
  static_assert(sizeof(Packet) == kPacketSize);
  const std::uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
  auto* slot = static_cast<char*>(queue->base_address) + (index & (queue->size - 1)) * kPacketSize;
  std::memcpy(slot + sizeof(head), reinterpret_cast<const char*>(&packet) + sizeof(head),
              kPacketSize - sizeof(head));
  before_ring();
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(slot), head, __ATOMIC_RELEASE);
  hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(index));
}

}  // namespace apusched::gpu_helper
