// SPDX-License-Identifier: MIT
// Kernel objects in the client's memory: what they cost, and the effect of those that have one.
// No instruction is executed: our own test kernels say after s_endpgm what they stand for, and
// ROCr's blit kernels are known by their code.
#pragma once

#include "device/state.h"
#include "queue/ports.h"

namespace apusched::softapu {

// Three words after s_endpgm: magic, operation (0 nothing, 1 fill32, 2 timed), nanoseconds per
// workgroup at the reference clock. A timed kernel takes them from its arguments instead, one
// uint64_t; where these cannot be read, or ask for more than kMostTimedNs, the hint's own count.
inline constexpr std::uint32_t kHintMagic = 0x48555041;  // "APUH"
inline constexpr std::uint64_t kMostTimedNs = 10'000'000'000;

class KernelTable final : public KernelPort {
 public:
  explicit KernelTable(const DeviceDescription& description) : description_(description) {}
  [[nodiscard]] KernelWork resolve(const DispatchPacket& packet) const override;
  void perform(const KernelWork& work, const DispatchPacket& packet) const override;

 private:
  [[nodiscard]] KernelWork blit(KernelEffect effect, const DispatchPacket& packet) const;
  const DeviceDescription& description_;
};

}  // namespace apusched::softapu
