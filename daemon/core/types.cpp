// SPDX-License-Identifier: MIT
#include "core/types.hpp"

#include <array>
#include <utility>

namespace apusched::core {
namespace {

template <typename Enum, std::size_t N>
std::optional<Enum> find_name(const std::array<std::pair<Enum, std::string_view>, N>& names,
                              std::string_view text) {
  for (const auto& [value, name] : names)
    if (name == text) return value;
  return std::nullopt;
}
template <typename Enum, std::size_t N>
std::string_view name_of(const std::array<std::pair<Enum, std::string_view>, N>& names,
                         Enum wanted) {
  for (const auto& [value, name] : names)
    if (value == wanted) return name;
  return "?";
}

using Level = PerformanceLevel;
constexpr std::array<std::pair<Level, std::string_view>, 9> kLevels{{
    {Level::automatic, "auto"},
    {Level::low, "low"},
    {Level::high, "high"},
    {Level::manual, "manual"},
    {Level::profile_standard, "profile_standard"},
    {Level::profile_min_sclk, "profile_min_sclk"},
    {Level::profile_min_mclk, "profile_min_mclk"},
    {Level::profile_peak, "profile_peak"},
    {Level::perf_determinism, "perf_determinism"},
}};
constexpr std::array<std::pair<WorkClass, std::string_view>, 4> kClasses{{
    {WorkClass::background, "background"},
    {WorkClass::batch, "batch"},
    {WorkClass::interactive, "interactive"},
    {WorkClass::critical, "critical"},
}};
constexpr std::array<std::pair<ProbeSource, std::string_view>, 2> kSources{{
    {ProbeSource::queue, "queue"},
    {ProbeSource::kernel, "kernel"},
}};

constexpr std::array<std::pair<SchedulingPolicy, std::string_view>, 4> kPolicies{{
    {SchedulingPolicy::idle, "idle"},
    {SchedulingPolicy::batch, "batch"},
    {SchedulingPolicy::normal, "normal"},
    {SchedulingPolicy::other, "other"},
}};
constexpr std::array<std::pair<IoClass, std::string_view>, 4> kIoClasses{{
    {IoClass::none, "none"},
    {IoClass::real_time, "real-time"},
    {IoClass::best_effort, "best-effort"},
    {IoClass::idle, "idle"},
}};
constexpr std::array<std::pair<RaiseSlices, std::string_view>, 3> kRaise{{
    {RaiseSlices::never, "never"},
    {RaiseSlices::exclusive, "exclusive"},
    {RaiseSlices::always, "always"},
}};
constexpr std::array<std::pair<QueuePriority, std::string_view>, 3> kPriorities{{
    {QueuePriority::low, "low"},
    {QueuePriority::normal, "normal"},
    {QueuePriority::high, "high"},
}};

bool is_lower_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

}  // namespace

std::string_view to_string(PerformanceLevel level) {
  return name_of(kLevels, level);
}

std::optional<PerformanceLevel> parse_performance_level(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  return find_name(kLevels, text);
}

bool raises_clocks(PerformanceLevel level) {
  return level == Level::high || level == Level::profile_peak;
}

bool is_someones_choice(PerformanceLevel level) {
  return level != Level::automatic && level != Level::low && level != Level::high;
}

std::optional<PciAddress> PciAddress::parse(std::string_view text) {
  constexpr std::string_view kShape = "xxxx:xx:xx.x";
  if (text.size() != kShape.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool fits = kShape[i] == 'x' ? is_lower_hex(text[i]) : text[i] == kShape[i];
    if (!fits) return std::nullopt;
  }
  return PciAddress(std::string(text));
}

std::string_view to_string(WorkClass work_class) {
  return name_of(kClasses, work_class);
}
std::optional<WorkClass> parse_work_class(std::string_view text) {
  return find_name(kClasses, text);
}
std::string_view to_string(ProbeSource source) {
  return name_of(kSources, source);
}
std::optional<ProbeSource> parse_probe_source(std::string_view text) {
  return find_name(kSources, text);
}
std::string_view to_string(SchedulingPolicy policy) {
  return name_of(kPolicies, policy);
}
std::optional<SchedulingPolicy> parse_scheduling_policy(std::string_view text) {
  return find_name(kPolicies, text);
}
std::string_view to_string(IoClass io_class) {
  return name_of(kIoClasses, io_class);
}
std::string to_string(const IoPriority& priority) {
  return std::string(to_string(priority.io_class)) + "/" + std::to_string(priority.data);
}
std::optional<IoPriority> parse_io_priority(std::string_view text) {
  constexpr std::int64_t kMostData = 8191;
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto io_class = find_name(kIoClasses, text.substr(0, slash));
  const auto data = parse_integer(text.substr(slash + 1));
  if (!io_class || !data || *data < 0 || *data > kMostData) return std::nullopt;
  if (*io_class == IoClass::none && *data != 0) return std::nullopt;
  return IoPriority{*io_class, static_cast<std::uint16_t>(*data)};
}
std::string_view to_string(RaiseSlices raise) {
  return name_of(kRaise, raise);
}
std::string_view to_string(QueuePriority priority) {
  return name_of(kPriorities, priority);
}
std::optional<QueuePriority> parse_queue_priority(std::string_view text) {
  return find_name(kPriorities, text);
}

}  // namespace apusched::core
