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
constexpr int kDeepest = 16;  ///< groups below one that are looked into

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

/// Also those of groups below that are no scheduling groups of their own: only where the cpu
/// controller is enabled for a group does the file cpu.weight exist. A v1 group always is one.
void add_processes(const std::string& directory, bool with_below, std::vector<core::Pid>& pids,
                   int depth = 0) {
  if (const auto text = read_small_file(directory + "/cgroup.procs", kGroupBytes))
    for (const auto pid : parse_children(*text))
      if (pids.size() < kGroupProcesses) pids.push_back(pid);
  if (!with_below || depth >= kDeepest) return;
  for (const auto& name : groups_below(directory)) {
    const auto group = (std::filesystem::path(directory) / name).string();
    if (!is_there(group + "/cpu.weight")) add_processes(group, with_below, pids, depth + 1);
  }
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
    add_processes(is_v2 ? unified : cgroup_root_ + "/cpu" + at->cpu_group, is_v2, pids);
    return pids;
  }
  if (at->autogroup_enabled && at->autogroup)
    return processes_where([&](core::Pid other) {
      return autogroup_of(other) == at->autogroup && cpu_group_of(other) == "/";
    });
  return processes_where([&](core::Pid other) { return cpu_group_of(other) == "/"; });
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

}  // namespace apusched::platform
