// SPDX-License-Identifier: MIT
#include "platform/proc_parse.hpp"

#include <array>

namespace apusched::platform {
namespace {

// linux include/linux/sched.h PF_KTHREAD
constexpr std::int64_t kPfKthread = 0x00200000;

/// Takes the next blank-separated word off the front.
std::string_view next_word(std::string_view& text) {
  const auto begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) {
    text = {};
    return {};
  }
  text.remove_prefix(begin);
  const auto end = text.find_first_of(" \t\n");
  const auto word = text.substr(0, end);
  text.remove_prefix(word.size());
  return word;
}

std::optional<std::string_view> line_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    auto line = text.substr(0, end);
    if (line.starts_with(key)) return line.substr(key.size());
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return std::nullopt;
}

bool is_clean_path(std::string_view path) {
  if (!path.starts_with('/')) return false;
  return path.find("/../") == std::string_view::npos && !path.ends_with("/..");
}

bool lists_cpu(std::string_view controllers) {
  while (!controllers.empty()) {
    const auto comma = controllers.find(',');
    if (controllers.substr(0, comma) == "cpu") return true;
    if (comma == std::string_view::npos) break;
    controllers.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace

std::optional<ProcStat> parse_stat(std::string_view text) {
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return std::nullopt;
  ProcStat stat;
  stat.comm = std::string(text.substr(open + 1, close - open - 1));
  auto rest = text.substr(close + 1);
  // Fields 3..22 of proc(5), counted from the state.
  std::array<std::string_view, 20> field;
  for (auto& word : field) word = next_word(rest);
  const auto parent = core::parse_integer(field[1]);
  const auto flags = core::parse_integer(field[6]);
  const auto nice = core::Nice::parse(field[16]);
  const auto start = core::parse_integer(field[19]);
  if (field[0].size() != 1 || !parent || !flags || !nice || !start || *start < 0)
    return std::nullopt;
  stat.state = field[0].front();
  stat.parent = static_cast<std::int32_t>(*parent);
  stat.kernel_thread = (*flags & kPfKthread) != 0;
  stat.nice = *nice;
  stat.start.ticks = static_cast<std::uint64_t>(*start);
  return stat;
}

std::optional<ProcAutogroup> parse_autogroup(std::string_view text) {
  const auto name = next_word(text);
  const auto word = next_word(text);
  const auto nice = core::Nice::parse(next_word(text));
  constexpr std::string_view kPrefix = "/autogroup-";
  if (!name.starts_with(kPrefix) || !core::parse_integer(name.substr(kPrefix.size())) ||
      word != "nice" || !nice)
    return std::nullopt;
  return ProcAutogroup{std::string(name), *nice};
}

ProcCgroup parse_cgroup(std::string_view text) {
  ProcCgroup result;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    const auto first = line.find(':');
    const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second != std::string_view::npos) {
      const auto controllers = line.substr(first + 1, second - first - 1);
      const auto path = line.substr(second + 1);
      if (is_clean_path(path)) {
        if (controllers.empty() && line.starts_with("0:")) result.unified = std::string(path);
        if (lists_cpu(controllers)) result.cpu_v1 = std::string(path);
      }
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return result;
}

std::optional<core::Pid> parse_pidfd_info(std::string_view text) {
  auto value = line_value(text, "Pid:");
  return value ? core::Pid::parse(next_word(*value)) : std::nullopt;
}

std::optional<std::uint64_t> parse_schedstat_run(std::string_view text) {
  const auto run = core::parse_integer(next_word(text));
  if (!run || *run < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*run);
}

std::vector<core::Pid> parse_children(std::string_view text) {
  std::vector<core::Pid> pids;
  for (auto word = next_word(text); !word.empty(); word = next_word(text))
    if (const auto pid = core::Pid::parse(word)) pids.push_back(*pid);
  return pids;
}

std::optional<std::uint32_t> parse_status_uid(std::string_view text) {
  auto value = line_value(text, "Uid:");
  if (!value) return std::nullopt;
  const auto uid = core::parse_integer(next_word(*value));
  if (!uid || *uid < 0 || *uid > 0xffffffffLL) return std::nullopt;
  return static_cast<std::uint32_t>(*uid);
}

std::optional<core::Pid> parse_status_tgid(std::string_view text) {
  auto value = line_value(text, "Tgid:");
  return value ? core::Pid::parse(next_word(*value)) : std::nullopt;
}

}  // namespace apusched::platform
