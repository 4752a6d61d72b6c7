// SPDX-License-Identifier: MIT
// HSA signals in the client's memory (amd_signal_t), as the packet processor of the GPU treats
// them.
#pragma once

#include "events/event_table.h"
#include "queue/ports.h"

namespace apusched::softapu {

class HostSignals final : public SignalPort {
 public:
  explicit HostSignals(EventTable& events) : events_(events) {}
  [[nodiscard]] std::int64_t load(std::uint64_t handle) const override;
  void complete(std::uint64_t handle, const RunTimes* times) override;
  void raise(std::uint64_t handle, std::int64_t value) override;

 private:
  EventTable& events_;
};

// The GPU's clock counter runs with the reference clock of all these APUs; libhsakmt expects
// timestamps in its ticks.
inline constexpr std::uint64_t kGpuCounterHz = 100'000'000;
[[nodiscard]] std::uint64_t gpu_ticks(Nanoseconds time);

}  // namespace apusched::softapu
