// SPDX-License-Identifier: MIT
// What the moving files of the /sys tree show.
#pragma once

#include <chrono>
#include <cstdint>

#include "device/state.h"

namespace apusched::softapu {

struct Readings {
  std::chrono::nanoseconds now{};
  std::uint32_t sclk_mhz = 0, mclk_index = 0;
  std::uint32_t busy_percent = 0;
  double power_w = 0, gfx_power_w = 0, cpu_power_w = 0, temperature_c = 0;
  double cpu_load = 0;
  std::uint32_t throttled = 0;                // kThrottle* of device/state.h
  std::uint64_t vram_used = 0, gtt_used = 0;  // of clients, by KFD's flags
  Level level = Level::automatic;
};

}  // namespace apusched::softapu
