// SPDX-License-Identifier: MIT
#include "gpu_helper/telemetry_parse.hpp"

#include "core/bounded.hpp"

namespace apusched::gpu_helper {
namespace {

constexpr std::int64_t kUnread16 = 0xFFFF;
constexpr std::int64_t kUnread32 = 0xFFFFFFFF;

/// One decimal number with at most one trailing newline: the form of every sysfs number.
std::optional<std::int64_t> number(std::string_view text, std::int64_t least, std::int64_t most) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  const auto value = core::parse_integer(text);
  if (!value || *value < least || *value > most) return std::nullopt;
  return value;
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// "1: 400Mhz *" or, as Renoir prints its current clock, "853Mhz *".
std::optional<std::uint32_t> starred_clock(std::string_view row) {
  row.remove_suffix(1);
  if (const auto colon = row.find(':'); colon != std::string_view::npos)
    row.remove_prefix(colon + 1);
  row = trim(row);
  if (!row.ends_with("Mhz") && !row.ends_with("MHz")) return std::nullopt;
  row.remove_suffix(3);
  const auto value = number(row, 1, 10000);
  return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
}

}  // namespace

std::optional<std::uint32_t> parse_busy_percent(std::string_view text) {
  const auto value = number(text, 0, 100);
  return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
}

std::optional<double> parse_temperature(std::string_view text) {
  const auto value = number(text, -40000, 150000);
  // A sensor of millidegrees never reads exactly -1: that is an error number.
  if (!value || *value == kUnread16 || *value == -1) return std::nullopt;
  return static_cast<double>(*value) / 1000.0;
}

std::optional<double> parse_power(std::string_view text) {
  // 0 W is what firmware without the counter answers; 0xFFFF comes in W, mW and uW.
  const auto value = number(text, 1, 1'000'000'000);
  if (!value || *value == kUnread16 || *value == kUnread16 * 1000) return std::nullopt;
  return static_cast<double>(*value) / 1e6;
}

std::optional<std::uint32_t> parse_clock_hz(std::string_view text) {
  const auto value = number(text, 1'000'000, 10'000'000'000);
  if (!value || *value == kUnread32) return std::nullopt;
  return static_cast<std::uint32_t>(*value / 1'000'000);
}

std::optional<std::uint32_t> parse_clock_table(std::string_view text) {
  std::string_view starred;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto row = trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!row.ends_with('*')) continue;
    if (!starred.empty()) return std::nullopt;
    starred = row;
  }
  return starred.empty() ? std::nullopt : starred_clock(starred);
}

std::optional<std::uint64_t> parse_memory(std::string_view text) {
  const auto value = number(text, 0, std::int64_t{1} << 40);
  if (!value || *value == kUnread32) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

}  // namespace apusched::gpu_helper
