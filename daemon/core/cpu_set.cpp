// SPDX-License-Identifier: MIT
#include "core/cpu_set.hpp"

#include "core/bounded.hpp"

namespace apusched::core {

std::optional<CpuSet> parse_cpu_numbers(std::string_view text) {
  constexpr std::string_view kBlanks = " \n";
  CpuSet cpus;
  for (auto start = text.find_first_not_of(kBlanks); start != std::string_view::npos;) {
    const auto end = text.find_first_of(kBlanks, start);
    const auto number = parse_integer(text.substr(start, end - start));
    if (!number || *number < 0 || *number >= static_cast<std::int64_t>(kMostCpus))
      return std::nullopt;
    cpus.set(static_cast<std::size_t>(*number));
    start = text.find_first_not_of(kBlanks, end);
  }
  return cpus.any() ? std::optional(cpus) : std::nullopt;
}

std::string cpu_list(const CpuSet& cpus) {
  std::string text;
  for (std::size_t first = 0; first < kMostCpus; ++first) {
    if (!cpus.test(first)) continue;
    auto last = first;
    while (last + 1 < kMostCpus && cpus.test(last + 1)) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    if (last > first) text += '-' + std::to_string(last);
    first = last;
  }
  return text;
}

}  // namespace apusched::core
