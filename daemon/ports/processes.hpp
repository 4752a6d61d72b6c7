// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/cpu_set.hpp"
#include "core/placement.hpp"
#include "core/result.hpp"
#include "core/types.hpp"

namespace apusched::ports {

struct ProcessFacts {
  core::ProcessKey key;
  std::string executable;  ///< path, or "[comm]" where it cannot be read
  std::uint32_t uid = 0;
  bool kernel_thread = false;
};

/// What has to be known before a process is touched; the cheap part of ProcessFacts.
struct ProcessIdentity {
  core::ProcessKey key;
  core::Nice nice;  ///< of the main thread
  bool kernel_thread = false;
};

struct ThreadFacts {
  core::ThreadKey key;
  core::Nice nice;
};

/// Where a process may run.
struct Affinity {
  core::CpuSet cpus;  ///< of any of its threads
  std::uint32_t threads = 0;
};

/// Keeps one process identified (a pidfd). Destroying it closes the descriptor.
class ProcessHandle {
 public:
  virtual ~ProcessHandle() = default;
  [[nodiscard]] virtual core::Pid pid() const = 0;
  /// Readable (epoll) once the process has exited.
  [[nodiscard]] virtual int exit_fd() const = 0;
  [[nodiscard]] virtual bool alive() const = 0;
};

/// Read access to processes. Every function answers `gone` for a process that is not there.
class ProcessSource {
 public:
  virtual ~ProcessSource() = default;
  [[nodiscard]] virtual core::Result<std::unique_ptr<ProcessHandle>> open(core::Pid pid) = 0;
  /// Takes a descriptor a client sent (does not take ownership: it is duplicated).
  [[nodiscard]] virtual core::Result<std::unique_ptr<ProcessHandle>> adopt(int pidfd) = 0;
  [[nodiscard]] virtual core::Result<ProcessFacts> facts(core::Pid pid) = 0;
  [[nodiscard]] virtual core::Result<ProcessIdentity> identity(core::Pid pid) = 0;
  /// At most `limit` threads; more is `limit_reached`.
  [[nodiscard]] virtual core::Result<std::vector<ThreadFacts>> threads(core::Pid pid,
                                                                       std::uint32_t limit) = 0;
  /// Those threads that are not in `known`, possibly none; more than `limit` with the known ones
  /// is `limit_reached`. Much cheaper than `threads` where few are new.
  [[nodiscard]] virtual core::Result<std::vector<ThreadFacts>> threads_besides(
      core::Pid pid, const std::set<core::Tid>& known, std::uint32_t limit) = 0;
  [[nodiscard]] virtual core::Result<std::vector<core::Pid>> children(core::Pid pid) = 0;
  /// The start time that a process born now would have.
  [[nodiscard]] virtual core::StartTime now() = 0;
  [[nodiscard]] virtual core::Result<core::Placement> placement(core::Pid pid) = 0;
  /// Any live process of the autogroup (it outlives the process that was used to set it).
  [[nodiscard]] virtual core::Result<core::Pid> member_of_autogroup(const std::string& group) = 0;
  /// The processes whose threads are compared with those of this one by nice, itself included: of
  /// its cpu cgroup, else of its session, else of the root group. Can read all of /proc.
  [[nodiscard]] virtual core::Result<std::vector<core::Pid>> sharing_group(core::Pid pid) = 0;
  /// The name of a cgroup in `group` (a path in the v2 tree), other than `child`, that has
  /// processes in it or below it, or "processes of its own"; empty where there is none.
  [[nodiscard]] virtual core::Result<std::string> occupied_beside(const std::string& group,
                                                                  const std::string& child) = 0;
  /// CPU time of all threads, nanoseconds: progress, never gpu_busy_percent. One system call. A
  /// process for which it has not grown has not run: it has no new threads, children or queues.
  [[nodiscard]] virtual core::Result<std::uint64_t> activity(core::Pid pid) = 0;
  /// The union over its threads of what affinity and cpuset leave them, online CPUs only. More than
  /// `limit` threads is `limit_reached`, more CPUs than a core::CpuSet holds `unsupported`.
  [[nodiscard]] virtual core::Result<Affinity> affinity(core::Pid pid, std::uint32_t limit) = 0;
};

}  // namespace apusched::ports
