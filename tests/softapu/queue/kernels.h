// SPDX-License-Identifier: MIT
// Kernel objects in the client's memory: what they cost, and the effect of those that have one.
// No instruction is executed: our own test kernels say after s_endpgm what they stand for, and
// ROCr's blit kernels are known by their code.
#pragma once

#include "device/state.h"
#include "queue/ports.h"

namespace apusched::softapu {

// Three words after s_endpgm: magic, operation (0 nothing, 1 fill32), nanoseconds per workgroup
// at the reference clock.
inline constexpr std::uint32_t kHintMagic = 0x48555041;  // "APUH"

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
