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
std::string_view to_string(RaiseSlices raise) {
  switch (raise) {
    case RaiseSlices::never:
      return "never";
    case RaiseSlices::exclusive:
      return "exclusive";
    case RaiseSlices::always:
      return "always";
  }
  return "?";
}
std::string_view to_string(QueuePriority priority) {
  return name_of(kPriorities, priority);
}
std::optional<QueuePriority> parse_queue_priority(std::string_view text) {
  return find_name(kPriorities, text);
}

}  // namespace apusched::core
