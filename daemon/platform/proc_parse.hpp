// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

/// Pure parsers of /proc texts. Whoever owns a process chooses its name and cgroup: nothing here
/// trusts the text, malformed input is no value.
namespace apusched::platform {

struct ProcStat {
  std::string comm;
  char state = '?';
  std::int32_t parent = 0;
  bool kernel_thread = false;
  core::Nice nice = core::Nice::of<0>();
  core::StartTime start;
};
/// /proc/PID/stat or /proc/PID/task/TID/stat. The name is in parentheses and may hold any byte,
/// ')' and newline included: the last ')' ends it.
[[nodiscard]] std::optional<ProcStat> parse_stat(std::string_view text);

struct ProcAutogroup {
  std::string name;  ///< "/autogroup-88"
  core::Nice nice = core::Nice::of<0>();
};
/// "/autogroup-88 nice -10"
[[nodiscard]] std::optional<ProcAutogroup> parse_autogroup(std::string_view text);

struct ProcCgroup {
  std::optional<std::string> unified;  ///< path of the "0::" line
  std::optional<std::string> cpu_v1;   ///< path of the v1 hierarchy with the cpu controller
};
/// /proc/PID/cgroup. A path with a ".." component (a foreign cgroup namespace) is no value.
[[nodiscard]] ProcCgroup parse_cgroup(std::string_view text);

/// "Pid:" of /proc/self/fdinfo/FD. No value: not a pidfd. Zero or -1 (another pid namespace, or
/// the process was reaped) are no value either.
[[nodiscard]] std::optional<core::Pid> parse_pidfd_info(std::string_view text);

/// First field of schedstat: nanoseconds on a CPU.
[[nodiscard]] std::optional<std::uint64_t> parse_schedstat_run(std::string_view text);

/// Blank-separated PIDs of /proc/PID/task/TID/children.
[[nodiscard]] std::vector<core::Pid> parse_children(std::string_view text);

/// Real uid from the "Uid:" line of /proc/PID/status.
[[nodiscard]] std::optional<std::uint32_t> parse_status_uid(std::string_view text);

/// The process of a thread: "Tgid:" of /proc/TID/status.
[[nodiscard]] std::optional<core::Pid> parse_status_tgid(std::string_view text);

}  // namespace apusched::platform
