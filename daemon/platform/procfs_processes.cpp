// SPDX-License-Identifier: MIT
#include "platform/procfs_processes.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>

#include "platform/errno_error.hpp"
#include "platform/proc_dir.hpp"
#include "platform/proc_parse.hpp"
#include "platform/procfs_meters.hpp"
#include "platform/small_file.hpp"
#include "platform/unique_fd.hpp"

namespace apusched::platform {
namespace {

std::string proc_path(core::Pid pid, const char* name) {
  return "/proc/" + core::to_string(pid) + "/" + name;
}

class PidfdHandle final : public ports::ProcessHandle {
 public:
  PidfdHandle(core::Pid pid, UniqueFd fd) : pid_(pid), fd_(std::move(fd)) {}
  core::Pid pid() const override { return pid_; }
  int exit_fd() const override { return fd_.get(); }
  bool alive() const override {
    pollfd entry{fd_.get(), POLLIN, 0};
    return ::poll(&entry, 1, 0) == 0;
  }

 private:
  core::Pid pid_;
  UniqueFd fd_;
};

/// Calls `visit` with every numeric entry of a directory until it answers false.
template <typename Visit>
core::Result<void> for_each_number(const std::string& path, Visit visit) {
  auto dir = ProcDir::open(path);
  if (!dir) return tl::unexpected(dir.error());
  return dir->for_each(visit);
}

bool exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

std::string read_link(const std::string& path) {
  std::array<char, 4096> buffer{};
  const auto size = ::readlink(path.c_str(), buffer.data(), buffer.size());
  return size > 0 ? std::string(buffer.data(), static_cast<std::size_t>(size)) : std::string();
}

core::Result<ProcStat> read_stat(core::Pid pid) {
  const auto text = read_small_file(proc_path(pid, "stat"), ProcDir::Text().size());
  if (!text) return tl::unexpected(text.error());
  auto stat = parse_stat(*text);
  if (!stat)
    return core::fail(core::ErrorCode::failed, "read", proc_path(pid, "stat"), "malformed text");
  // A zombie has no threads left to schedule: for us it is gone.
  if (stat->state == 'Z' || stat->state == 'X')
    return core::fail(core::ErrorCode::gone, "look at process", core::to_string(pid),
                      "it has exited");
  return std::move(*stat);
}

}  // namespace

ProcfsProcesses::ProcfsProcesses(std::string cgroup_root) : cgroup_root_(std::move(cgroup_root)) {}

core::Result<std::unique_ptr<ports::ProcessHandle>> ProcfsProcesses::open(core::Pid pid) {
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid.value(), 0)));
  if (!fd) {
    const int error = errno;
    // For the id of a thread that is no group leader the kernel answers EINVAL or, newer, ENOENT.
    const auto status = read_small_file(proc_path(pid, "status"));
    const auto leader = status ? parse_status_tgid(*status) : std::nullopt;
    if (leader && *leader != pid)
      return core::fail(core::ErrorCode::invalid_input, "open process", core::to_string(pid),
                        "that is a thread; its process is " + core::to_string(*leader));
    return tl::unexpected(errno_error(error, "open process", core::to_string(pid)));
  }
  return std::make_unique<PidfdHandle>(pid, std::move(fd));
}

core::Result<std::unique_ptr<ports::ProcessHandle>> ProcfsProcesses::adopt(int pidfd) {
  const auto info = read_small_file("/proc/self/fdinfo/" + std::to_string(pidfd));
  if (!info) return tl::unexpected(info.error());
  if (info->find("\nPid:") == std::string::npos)
    return core::fail(core::ErrorCode::invalid_input, "use descriptor", "",
                      "it is not a pidfd; open one with pidfd_open(2)");
  const auto pid = parse_pidfd_info(*info);
  if (!pid) return core::fail(core::ErrorCode::gone, "use pidfd", "", "its process is gone");
  UniqueFd own(::fcntl(pidfd, F_DUPFD_CLOEXEC, 3));
  if (!own) return tl::unexpected(errno_error(errno, "duplicate pidfd", core::to_string(*pid)));
  return std::make_unique<PidfdHandle>(*pid, std::move(own));
}

core::Result<ports::ProcessIdentity> ProcfsProcesses::identity(core::Pid pid) {
  const auto stat = read_stat(pid);
  if (!stat) return tl::unexpected(stat.error());
  return ports::ProcessIdentity{{pid, stat->start}, stat->nice, stat->kernel_thread};
}

core::Result<ports::ProcessFacts> ProcfsProcesses::facts(core::Pid pid) {
  const auto stat = read_stat(pid);
  if (!stat) return tl::unexpected(stat.error());
  const auto status = read_small_file(proc_path(pid, "status"));
  if (!status) return tl::unexpected(status.error());
  ports::ProcessFacts facts{
      {pid, stat->start}, read_link(proc_path(pid, "exe")), 0, stat->kernel_thread};
  if (facts.executable.empty()) facts.executable = "[" + stat->comm + "]";
  facts.uid = parse_status_uid(*status).value_or(0xffffffffU);
  return facts;
}

core::Result<std::vector<ports::ThreadFacts>> ProcfsProcesses::threads(core::Pid pid,
                                                                       std::uint32_t limit) {
  auto threads = threads_besides(pid, {}, limit);
  if (threads && threads->empty())
    return core::fail(core::ErrorCode::gone, "list threads of", core::to_string(pid),
                      "it has exited");
  return threads;
}

core::Result<std::vector<ports::ThreadFacts>> ProcfsProcesses::threads_besides(
    core::Pid pid, const std::set<core::Tid>& known, std::uint32_t limit) {
  std::vector<ports::ThreadFacts> threads;
  auto tasks = ProcDir::open(proc_path(pid, "task"));
  if (!tasks) return tl::unexpected(tasks.error());
  bool too_many = false;
  ProcDir::Text text;
  const auto listed = tasks->for_each([&](core::Pid number) {
    const auto tid = *core::Tid::make(number.value());
    if (known.contains(tid)) return true;
    if (threads.size() + known.size() >= limit) {
      too_many = true;
      return false;
    }
    const auto stat = parse_stat(tasks->read(number, "stat", text));
    if (stat && stat->state != 'Z' && stat->state != 'X')
      threads.push_back({{tid, stat->start}, stat->nice});
    return true;
  });
  if (!listed) return tl::unexpected(listed.error());
  if (too_many)
    return core::fail(core::ErrorCode::limit_reached, "list threads of", core::to_string(pid),
                      "more than limits.max_threads_per_process = " + std::to_string(limit));
  return threads;
}

core::Result<std::vector<core::Pid>> ProcfsProcesses::children(core::Pid pid) {
  std::vector<core::Pid> result;
  const auto base = proc_path(pid, "task");
  const auto listed = for_each_number(base, [&](core::Pid number) {
    const auto text =
        read_small_file(base + "/" + core::to_string(number) + "/children", 64 * 1024);
    if (text)
      for (const auto child : parse_children(*text)) result.push_back(child);
    return true;
  });
  if (!listed) return tl::unexpected(listed.error());
  return result;
}

core::StartTime ProcfsProcesses::now() {
  // The kernel counts start times on this clock, in USER_HZ (linux fs/proc/array.c).
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  constexpr std::uint64_t kNanoseconds = 1'000'000'000;
  return {static_cast<std::uint64_t>(time.tv_sec) * per_second +
          static_cast<std::uint64_t>(time.tv_nsec) * per_second / kNanoseconds};
}

core::Result<core::Placement> ProcfsProcesses::placement(core::Pid pid) {
  core::Placement placement;
  const auto group = read_small_file(proc_path(pid, "autogroup"), 256);
  if (!group && group.error().code == core::ErrorCode::gone && !exists(proc_path(pid, "stat")))
    return tl::unexpected(group.error());
  if (group)
    if (const auto parsed = parse_autogroup(*group)) placement.autogroup = parsed->name;
  const auto enabled = read_small_file("/proc/sys/kernel/sched_autogroup_enabled", 16);
  placement.autogroup_enabled = enabled && enabled->starts_with('1');
  placement.cpu_group = cpu_group_of(pid);
  if (const auto groups = read_small_file(proc_path(pid, "cgroup"), 16 * 1024))
    placement.unified = parse_cgroup(*groups).unified.value_or("");
  const auto scx = read_small_file("/sys/kernel/sched_ext/state", 32);
  placement.sched_ext_active = scx && scx->starts_with("enabled");
  return placement;
}

core::Result<std::uint64_t> ProcfsProcesses::activity(core::Pid pid) {
  const auto used = cpu_time_of(pid);
  if (!used) return tl::unexpected(used.error());
  return static_cast<std::uint64_t>(used->count());
}

/// What the kernel answers has the cpuset in it (linux kernel/sched/syscalls.c, sched_getaffinity).
core::Result<ports::Affinity> ProcfsProcesses::affinity(core::Pid pid, std::uint32_t limit) {
  static_assert(CPU_SETSIZE == core::kMostCpus);
  ports::Affinity result;
  cpu_set_t all;
  CPU_ZERO(&all);
  int error = 0;
  const auto listed = for_each_number(proc_path(pid, "task"), [&](core::Pid number) {
    if (++result.threads > limit) return false;
    cpu_set_t mask;
    CPU_ZERO(&mask);
    if (::sched_getaffinity(number.value(), sizeof mask, &mask) != 0) {
      error = errno == ESRCH ? error : errno;
      return error == 0;
    }
    CPU_OR(&all, &all, &mask);
    return true;
  });
  if (!listed) return tl::unexpected(listed.error());
  // EINVAL: the kernel could have more CPUs than the set has room for.
  if (error != 0)
    return tl::unexpected(errno_error(error, "read CPU affinity of", core::to_string(pid)));
  if (result.threads > limit)
    return core::fail(core::ErrorCode::limit_reached, "read CPU affinity of", core::to_string(pid),
                      "more than " + std::to_string(limit) + " threads");
  for (std::size_t cpu = 0; cpu < core::kMostCpus; ++cpu)
    if (CPU_ISSET(cpu, &all)) result.cpus.set(cpu);
  return result;
}

}  // namespace apusched::platform
