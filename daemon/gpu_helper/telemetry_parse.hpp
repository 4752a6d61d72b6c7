// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/types.hpp"

/// Texts of amdgpu's sysfs and hwmon files to values. Pure. Whatever is missing, empty, out of
/// range or a known "not available" pattern (0xFFFF, UINT32_MAX, an underflow) is no value.
namespace apusched::gpu_helper {

/// gpu_busy_percent: 0..100.
[[nodiscard]] std::optional<std::uint32_t> parse_busy_percent(std::string_view text);
/// hwmon temp1_input, millidegrees Celsius. -40..150 degrees; 65.535 is an unread 0xFFFF.
[[nodiscard]] std::optional<double> parse_temperature(std::string_view text);
/// hwmon power1_average or power1_input, microwatts. Above 0, at most 1000 W.
[[nodiscard]] std::optional<double> parse_power(std::string_view text);
/// hwmon freq1_input, Hz; 1 MHz..10 GHz.
[[nodiscard]] std::optional<std::uint32_t> parse_clock_hz(std::string_view text);
/// pp_dpm_sclk: the one row that ends in '*'. Two such rows, or none, are no value (both occur).
[[nodiscard]] std::optional<std::uint32_t> parse_clock_table(std::string_view text);
/// mem_info_vram_used and mem_info_gtt_used, bytes; at most 1 TiB, which drops the wrapped
/// negative numbers that were seen in the wild (18446744073709547520).
[[nodiscard]] std::optional<std::uint64_t> parse_memory(std::string_view text);

}  // namespace apusched::gpu_helper
