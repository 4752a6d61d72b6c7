// SPDX-License-Identifier: MIT
// The part of platform::ProcfsProcesses that finds scheduling groups and who is in them.
#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "platform/proc_dir.hpp"
#include "platform/proc_parse.hpp"
#include "platform/procfs_processes.hpp"
#include "platform/small_file.hpp"

namespace apusched::platform {
namespace {

constexpr std::size_t kGroupProcesses = 16384;  ///< listed of one group
constexpr std::size_t kGroupBytes = std::size_t{256} * 1024;
constexpr std::size_t kUnitProcesses = 256;  ///< in one unit that is to be stopped
constexpr int kDeepest = 16;                 ///< groups below one that are looked into

bool is_there(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

std::optional<std::string> autogroup_of(core::Pid pid) {
  const auto text = read_small_file("/proc/" + core::to_string(pid) + "/autogroup", 256);
  const auto parsed = text ? parse_autogroup(*text) : std::nullopt;
  return parsed ? std::optional(parsed->name) : std::nullopt;
}

/// Names of the groups below one; empty where it cannot be read.
std::vector<std::string> groups_below(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(directory.c_str()), ::closedir);
  if (!dir) return names;
  while (const auto* entry = ::readdir(dir.get()))
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  std::ranges::sort(names);
  return names;
}

/// Which groups below one count as part of it. Only where the cpu controller is enabled for a group
/// does the file cpu.weight exist: then it is a scheduling group of its own. A v1 group always is.
enum class Below { none, same_scheduling_group, all };

/// False where it did not see all of them.
bool add_processes(const std::string& directory, Below below, std::vector<core::Pid>& pids,
                   int depth = 0) {
  if (const auto text = read_small_file(directory + "/cgroup.procs", kGroupBytes))
    for (const auto pid : parse_children(*text))
      if (pids.size() < kGroupProcesses) pids.push_back(pid);
  if (below == Below::none) return true;
  if (depth >= kDeepest) return false;
  bool all = pids.size() < kGroupProcesses;
  for (const auto& name : groups_below(directory)) {
    const auto group = (std::filesystem::path(directory) / name).string();
    if (below == Below::all || !is_there(group + "/cpu.weight"))
      all = add_processes(group, below, pids, depth + 1) && all;
  }
  return all;
}

template <typename Matches>
core::Result<std::vector<core::Pid>> processes_where(Matches matches,
                                                     std::size_t limit = kGroupProcesses) {
  auto proc = ProcDir::open("/proc");
  if (!proc) return tl::unexpected(proc.error());
  std::vector<core::Pid> pids;
  const auto listed = proc->for_each([&](core::Pid pid) {
    if (matches(pid)) pids.push_back(pid);
    return pids.size() < limit;
  });
  if (!listed) return tl::unexpected(listed.error());
  return pids;
}

}  // namespace

std::string ProcfsProcesses::cpu_group_of(core::Pid pid) const {
  const auto text = read_small_file("/proc/" + core::to_string(pid) + "/cgroup", 16 * 1024);
  if (!text) return "/";
  const auto groups = parse_cgroup(*text);
  if (groups.cpu_v1) return *groups.cpu_v1;
  if (!groups.unified) return "/";
  // A cgroup is a scheduling group of its own only where the cpu controller is enabled for it,
  // which is where the file cpu.weight exists.
  std::string path = *groups.unified;
  while (path.size() > 1) {
    if (is_there(cgroup_root_ + path + "/cpu.weight")) return path;
    path.resize(path.rfind('/'));
  }
  return "/";
}

core::Result<core::Pid> ProcfsProcesses::member_of_autogroup(const std::string& group) {
  const auto found = processes_where([&](core::Pid pid) { return autogroup_of(pid) == group; }, 1);
  if (!found) return tl::unexpected(found.error());
  if (found->empty())
    return core::fail(core::ErrorCode::gone, "find a member of", group, "no process is left");
  return found->front();
}

core::Result<std::vector<core::Pid>> ProcfsProcesses::sharing_group(core::Pid pid) {
  const auto at = placement(pid);
  if (!at) return tl::unexpected(at.error());
  if (at->cpu_group != "/") {
    const auto unified = cgroup_root_ + at->cpu_group;
    const bool is_v2 = is_there(unified + "/cpu.weight");
    std::vector<core::Pid> pids;
    static_cast<void>(add_processes(is_v2 ? unified : cgroup_root_ + "/cpu" + at->cpu_group,
                                    is_v2 ? Below::same_scheduling_group : Below::none, pids));
    return pids;
  }
  // A process that inherited no session's group (PID 1 and what it started without setsid) is in
  // the root group, and /proc/PID/autogroup is empty (linux kernel/sched/autogroup.c,
  // proc_sched_autogroup_show_task): it shares with those of which that is so too.
  return processes_where([&](core::Pid other) {
    return cpu_group_of(other) == "/" &&
           (!at->autogroup_enabled || autogroup_of(other) == at->autogroup);
  });
}

core::Result<std::string> ProcfsProcesses::occupied_beside(const std::string& group,
                                                           const std::string& child) {
  const auto directory = cgroup_root_ + group;
  const auto own = read_small_file(directory + "/cgroup.procs", 64);
  if (!own) return tl::unexpected(own.error());
  if (!own->empty()) return std::string("processes of its own");
  for (const auto& name : groups_below(directory)) {
    if (name == child) continue;
    const auto events =
        read_small_file(std::filesystem::path(directory) / name / "cgroup.events", 256);
    // It went away meanwhile, or this is no v2 tree: then it counts as occupied.
    if (!events && events.error().code == core::ErrorCode::gone && is_there(directory)) continue;
    if (!events || events->find("populated 0") == std::string::npos) return name;
  }
  return std::string();
}

core::Result<std::vector<core::UnitProcess>> processes_in_group(const std::string& directory) {
  if (!is_there(directory + "/cgroup.procs"))
    return core::fail(core::ErrorCode::gone, "list processes of", directory, "no such group");
  std::vector<core::Pid> pids;
  if (!add_processes(directory, Below::all, pids) || pids.size() > kUnitProcesses)
    return core::fail(core::ErrorCode::limit_reached, "list processes of", directory,
                      "more than " + std::to_string(kUnitProcesses) + ", or too deep a tree");
  std::vector<core::UnitProcess> processes;
  for (const auto pid : pids) {
    auto name = read_small_file("/proc/" + core::to_string(pid) + "/comm", 64);
    if (!name) continue;  // it has ended
    while (name->ends_with('\n')) name->pop_back();
    processes.push_back({pid, std::move(*name)});
  }
  return processes;
}

}  // namespace apusched::platform
