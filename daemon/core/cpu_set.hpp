// SPDX-License-Identifier: MIT
#pragma once

#include <bitset>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace apusched::core {

/// More CPUs than any APU has; what is beyond is not dealt with.
inline constexpr std::size_t kMostCpus = 1024;
/// By the kernel's number.
using CpuSet = std::bitset<kMostCpus>;

/// Numbers with blanks between them, as cpufreq writes them (linux drivers/cpufreq/cpufreq.c,
/// cpufreq_show_cpus). No value for anything else, none included, or a number out of range.
[[nodiscard]] std::optional<CpuSet> parse_cpu_numbers(std::string_view text);
/// As cpuset(7) writes them: "0-3,8".
[[nodiscard]] std::string cpu_list(const CpuSet& cpus);

}  // namespace apusched::core
