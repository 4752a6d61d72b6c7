// SPDX-License-Identifier: MIT
// Texts that real machines have shown and that parsers fall over, on demand.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace apusched::softapu {

enum class Trap : std::uint8_t {
  nul_bytes,        // hundreds of them between the sections of pp_od_clk_voltage
  two_stars,        // two current rows in pp_dpm_*
  no_star,          // none
  bare_row,         // a last row without index: "   853Mhz *"
  equal_rows,       // all with the same clock
  missing_files,    // of load, memory, power and temperature
  unknown_metrics,  // gpu_metrics full of 0xFF
};

inline constexpr std::array<std::pair<Trap, std::string_view>, 7> kTraps = {{
    {Trap::nul_bytes, "nul-bytes"},
    {Trap::two_stars, "two-stars"},
    {Trap::no_star, "no-star"},
    {Trap::bare_row, "bare-row"},
    {Trap::equal_rows, "equal-rows"},
    {Trap::missing_files, "missing-files"},
    {Trap::unknown_metrics, "unknown-metrics"},
}};

class Traps {
 public:
  void set(Trap trap) { bits_ |= bit(trap); }
  [[nodiscard]] bool has(Trap trap) const { return (bits_ & bit(trap)) != 0; }

 private:
  static std::uint32_t bit(Trap trap) { return 1U << static_cast<unsigned>(trap); }
  std::uint32_t bits_ = 0;
};

[[nodiscard]] constexpr std::optional<Trap> trap_named(std::string_view name) {
  for (const auto& [trap, text] : kTraps)
    if (text == name) return trap;
  return std::nullopt;
}

}  // namespace apusched::softapu
