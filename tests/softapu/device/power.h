// SPDX-License-Identifier: MIT
// Clocks, power and heat of the software APU: pure functions of its state. Which of it is known and
// which is assumed: ../FIDELITY.md.
#pragma once

#include <cstdint>

#include "device/state.h"

namespace apusched::softapu {

// Power, temperature and GFXOFF over a time in which nothing else changed, up to now_ns.
void settle_power(DeviceState& state, std::int64_t elapsed_ns, bool executing);

// Moves the shader clock to where level, load, power and heat want it, as far as the ramp allows
// since it was last moved, and the memory clock. True if the shader clock changed.
bool choose_clocks(DeviceState& state);

// The clock that level and load ask for, before any limit.
[[nodiscard]] std::uint32_t wanted_sclk_mhz(const DeviceState& state);
// The most that power and heat leave.
[[nodiscard]] std::uint32_t sclk_limit_mhz(DeviceState& state);

// Nothing is left to move with time: no work, and clock, heat and GFXOFF are where they end.
[[nodiscard]] bool settled(const DeviceState& state);

// The firmware reports full load although nothing runs: two processes hold queues.
[[nodiscard]] bool clock_is_pinned(const DeviceState& state);

}  // namespace apusched::softapu
