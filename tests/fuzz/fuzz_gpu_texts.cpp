// SPDX-License-Identifier: MIT
// Helper records and sysfs texts: any bytes, no crash, no absurd value.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "gpu_helper/protocol.hpp"
#include "gpu_helper/telemetry_parse.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace apusched::gpu_helper;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto bytes = std::as_bytes(std::span(data, size));
  static_cast<void>(decode_event(bytes));
  static_cast<void>(decode_command(bytes));
  if (const auto busy = parse_busy_percent(text); busy && *busy > 100) std::abort();
  if (const auto heat = parse_temperature(text); heat && (*heat < -40 || *heat > 150)) std::abort();
  if (const auto power = parse_power(text); power && (*power <= 0 || *power > 1000)) std::abort();
  static_cast<void>(parse_clock_hz(text));
  static_cast<void>(parse_clock_table(text));
  static_cast<void>(parse_memory(text));
  return 0;
}
