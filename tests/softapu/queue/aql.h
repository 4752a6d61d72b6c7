// SPDX-License-Identifier: MIT
// AQL packets as the HSA headers define them, and what the software APU makes of a kernel.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>

#include "device/model.h"

namespace apusched::softapu {

using DispatchPacket = hsa_kernel_dispatch_packet_t;
inline constexpr std::size_t kPacketBytes = 64;

[[nodiscard]] constexpr unsigned packet_type(std::uint16_t header) {
  return (header >> HSA_PACKET_HEADER_TYPE) & 0xffU;
}
[[nodiscard]] constexpr bool has_barrier_bit(std::uint16_t header) {
  return ((header >> HSA_PACKET_HEADER_BARRIER) & 1U) != 0;
}

// What the processor writes to queue_inactive_signal (amd_gpu_agent.cpp of ROCr 5.2.3,
// DynamicScratchHandler: bits as the firmware reports them).
enum class QueueError : std::int64_t {
  dispatch_dimensions = 2,
  code_object = 8,
  packet_format = 32,
};

enum class KernelEffect : std::uint8_t {
  none,
  fill32,        // of our own test kernels: { uint32_t* out; uint32_t value; }
  copy_aligned,  // ROCr's blit kernels
  copy_misaligned,
  fill,
  unknown_blit,  // a blit kernel whose code is not known: must not be skipped silently
};

struct KernelWork {
  KernelCost cost;
  KernelEffect effect = KernelEffect::none;
};

// 0 when a size is missing.
[[nodiscard]] std::uint64_t workgroup_count(const DispatchPacket& packet);

}  // namespace apusched::softapu
