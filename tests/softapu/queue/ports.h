// SPDX-License-Identifier: MIT
// What a packet processor needs from the outside.
#pragma once

#include <cstdint>
#include <optional>

#include "device/model.h"
#include "queue/aql.h"

namespace apusched::softapu {

// The device, seen from one queue.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::optional<RunIndex> launch(const KernelCost& cost) = 0;
  virtual std::optional<RunTimes> collect(RunIndex run) = 0;
};

// HSA signals, by handle. A null handle is legal everywhere and means "no signal".
class SignalPort {
 public:
  virtual ~SignalPort() = default;
  [[nodiscard]] virtual std::int64_t load(std::uint64_t handle) const = 0;
  // Timestamps (when wanted), then decrement, then the interrupt.
  virtual void complete(std::uint64_t handle, const RunTimes* times) = 0;
  virtual void raise(std::uint64_t handle, std::int64_t value) = 0;
};

// Kernel objects: what they cost and do.
class KernelPort {
 public:
  virtual ~KernelPort() = default;
  [[nodiscard]] virtual KernelWork resolve(const DispatchPacket& packet) const = 0;
  virtual void perform(const KernelWork& work, const DispatchPacket& packet) const = 0;
};

}  // namespace apusched::softapu
