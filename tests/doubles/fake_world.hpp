// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ports/processes.hpp"
#include "ports/scheduler.hpp"

namespace apusched::doubles {

inline core::Pid pid_of(int number) {
  return *core::Pid::make(number);
}
inline core::Tid tid_of(int number) {
  return *core::Tid::make(number);
}
inline core::Nice nice_of(int number) {
  return *core::Nice::make(number);
}

/// The processes, threads and sessions that FakeProcesses and FakeScheduler show and change.
struct FakeWorld {
  struct Thread {
    int nice = 0;
    std::uint64_t start = 1;
    bool refuses = false;  ///< setpriority answers EPERM
    core::SchedulingPolicy policy = core::SchedulingPolicy::normal;
    core::IoPriority io = {};
    std::int64_t slack = 50000;
  };
  struct Process {
    std::uint64_t start = 1;
    std::map<int, Thread> threads;
    std::vector<int> children;
    std::string autogroup = "/autogroup-1";
    std::string cpu_group = "/";
    std::string unified = "/apu.slice/apu-left.slice/llama.service";
    bool kernel_thread = false;
    std::uint64_t activity = 0;                ///< grows a little with each look
    std::uint64_t per_look = 1;                ///< so much, in nanoseconds
    bool asleep = false;                       ///< but not then
    core::CpuSet cpus = core::CpuSet().set();  ///< where its threads may run
  };
  std::map<int, Process> processes;
  std::map<std::string, int> autogroups{{"/autogroup-1", 0}};
  std::vector<std::string> log;  ///< writes, in order; shared with the fake store

  Process& add(int pid, std::vector<int> nices = {0}) {
    Process process;
    process.start = next_start++;
    for (std::size_t i = 0; i < nices.size(); ++i)
      process.threads[pid + static_cast<int>(i)] = {nices[i], process.start};
    return processes.insert_or_assign(pid, process).first->second;
  }
  void add_thread(int pid, int tid, int nice) {
    // Cloned from the main thread, but for its nice.
    auto& threads = processes.at(pid).threads;
    Thread born = threads.begin()->second;
    born.nice = nice;
    born.start = next_start++;
    born.refuses = false;
    threads[tid] = born;
  }
  Thread* thread(int tid) {
    for (auto& [pid, process] : processes)
      if (const auto found = process.threads.find(tid); found != process.threads.end())
        return &found->second;
    return nullptr;
  }
  std::vector<int> nices(int pid) const {
    std::vector<int> result;
    for (const auto& [tid, thread] : processes.at(pid).threads) result.push_back(thread.nice);
    return result;
  }
  std::uint64_t next_start = 100;
  int groups_listed = 0;
  int activities_read = 0;
  int threads_listed = 0;                                     ///< of one process each
  std::vector<std::pair<std::string, std::string>> occupied;  ///< group and who is in it
};

inline auto gone(const std::string& target) {
  return core::fail(core::ErrorCode::gone, "look at", target, "No such process");
}

class FakeHandle final : public ports::ProcessHandle {
 public:
  FakeHandle(const FakeWorld& world, int pid)
      : world_(world), pid_(pid), start_(world.processes.at(pid).start) {}
  core::Pid pid() const override { return pid_of(pid_); }
  int exit_fd() const override { return pid_; }  // FakeLoop is told that this one is readable
  bool alive() const override {
    const auto found = world_.processes.find(pid_);
    return found != world_.processes.end() && found->second.start == start_;
  }

 private:
  const FakeWorld& world_;
  int pid_;
  std::uint64_t start_;
};

class FakeProcesses final : public ports::ProcessSource {
 public:
  explicit FakeProcesses(FakeWorld& world) : world_(world) {}

  core::Result<std::unique_ptr<ports::ProcessHandle>> open(core::Pid pid) override {
    if (!world_.processes.contains(pid.value())) return gone(core::to_string(pid));
    return std::make_unique<FakeHandle>(world_, pid.value());
  }
  core::Result<std::unique_ptr<ports::ProcessHandle>> adopt(int pidfd) override {
    return open(pid_of(pidfd));
  }
  core::Result<ports::ProcessIdentity> identity(core::Pid pid) override {
    const auto found = world_.processes.find(pid.value());
    if (found == world_.processes.end()) return gone(core::to_string(pid));
    const auto& process = found->second;
    const auto leader = process.threads.find(pid.value());
    return ports::ProcessIdentity{
        {pid, {process.start}},
        nice_of(leader == process.threads.end() ? 0 : leader->second.nice),
        process.kernel_thread};
  }
  core::Result<ports::ProcessFacts> facts(core::Pid pid) override {
    const auto known = identity(pid);
    if (!known) return tl::unexpected(known.error());
    return ports::ProcessFacts{known->key, "/usr/bin/engine", 1000, known->kernel_thread};
  }
  core::Result<std::vector<ports::ThreadFacts>> threads(core::Pid pid,
                                                        std::uint32_t limit) override {
    auto found = threads_besides(pid, {}, limit);
    if (found && found->empty()) return gone(core::to_string(pid));
    return found;
  }
  core::Result<std::vector<ports::ThreadFacts>> threads_besides(core::Pid pid,
                                                                const std::set<core::Tid>& known,
                                                                std::uint32_t limit) override {
    const auto found = world_.processes.find(pid.value());
    if (found == world_.processes.end()) return gone(core::to_string(pid));
    ++world_.threads_listed;
    if (found->second.threads.size() > limit)
      return core::fail(core::ErrorCode::limit_reached, "list threads of", core::to_string(pid),
                        "too many");
    std::vector<ports::ThreadFacts> result;
    for (const auto& [tid, thread] : found->second.threads)
      if (!known.contains(tid_of(tid)))
        result.push_back({{tid_of(tid), {thread.start}}, nice_of(thread.nice)});
    return result;
  }
  core::Result<std::vector<core::Pid>> children(core::Pid pid) override {
    const auto found = world_.processes.find(pid.value());
    if (found == world_.processes.end()) return gone(core::to_string(pid));
    std::vector<core::Pid> result;
    for (const int child : found->second.children) result.push_back(pid_of(child));
    return result;
  }
  core::StartTime now() override { return {world_.next_start}; }
  core::Result<core::Placement> placement(core::Pid pid) override {
    const auto found = world_.processes.find(pid.value());
    if (found == world_.processes.end()) return gone(core::to_string(pid));
    return core::Placement{found->second.cpu_group, true, found->second.autogroup, false,
                           found->second.unified};
  }
  core::Result<core::Pid> member_of_autogroup(const std::string& group) override {
    for (const auto& [pid, process] : world_.processes)
      if (process.autogroup == group) return pid_of(pid);
    return gone(group);
  }
  core::Result<std::vector<core::Pid>> sharing_group(core::Pid pid) override {
    const auto found = world_.processes.find(pid.value());
    if (found == world_.processes.end()) return gone(core::to_string(pid));
    ++world_.groups_listed;
    std::vector<core::Pid> result;
    for (const auto& [other, process] : world_.processes)
      if (process.cpu_group == found->second.cpu_group &&
          (process.cpu_group != "/" || process.autogroup == found->second.autogroup))
        result.push_back(pid_of(other));
    return result;
  }
  core::Result<std::string> occupied_beside(const std::string& group,
                                            const std::string& child) override {
    for (const auto& [path, name] : world_.occupied)
      if (path == group && name != child) return name;
    return std::string();
  }
  core::Result<std::uint64_t> activity(core::Pid pid) override {
    const auto found = world_.processes.find(pid.value());
    if (found == world_.processes.end()) return gone(core::to_string(pid));
    ++world_.activities_read;
    if (!found->second.asleep) found->second.activity += found->second.per_look;
    return found->second.activity;
  }
  core::Result<ports::Affinity> affinity(core::Pid pid, std::uint32_t limit) override {
    const auto found = world_.processes.find(pid.value());
    if (found == world_.processes.end()) return gone(core::to_string(pid));
    const auto threads = static_cast<std::uint32_t>(found->second.threads.size());
    if (threads > limit)
      return core::fail(core::ErrorCode::limit_reached, "read affinity of", core::to_string(pid),
                        "too many threads");
    return ports::Affinity{found->second.cpus, threads};
  }

 private:
  FakeWorld& world_;
};

class FakeScheduler final : public ports::Scheduler {
 public:
  explicit FakeScheduler(FakeWorld& world) : world_(world) {}

  core::Result<core::Nice> thread_nice(core::Tid tid) override {
    const auto* thread = world_.thread(tid.value());
    if (thread == nullptr) return gone(core::to_string(tid));
    return nice_of(thread->nice);
  }
  core::Result<void> set_thread_nice(core::Tid tid, core::Nice nice) override {
    return set(tid, "nice", [&](FakeWorld::Thread& thread) { thread.nice = nice.value(); });
  }
  core::Result<core::SchedulingPolicy> thread_policy(core::Tid tid) override {
    const auto* thread = world_.thread(tid.value());
    if (thread == nullptr) return gone(core::to_string(tid));
    return thread->policy;
  }
  core::Result<void> set_thread_policy(core::Tid tid, core::SchedulingPolicy policy) override {
    return set(tid, "policy", [&](FakeWorld::Thread& thread) { thread.policy = policy; });
  }
  core::Result<core::IoPriority> thread_io(core::Tid tid) override {
    const auto* thread = world_.thread(tid.value());
    if (thread == nullptr) return gone(core::to_string(tid));
    return thread->io;
  }
  core::Result<void> set_thread_io(core::Tid tid, core::IoPriority priority) override {
    return set(tid, "io", [&](FakeWorld::Thread& thread) { thread.io = priority; });
  }
  core::Result<core::TimerSlack> thread_timer_slack(core::Tid tid) override {
    const auto* thread = world_.thread(tid.value());
    if (thread == nullptr) return gone(core::to_string(tid));
    return *core::TimerSlack::make(thread->slack);
  }
  core::Result<void> set_thread_timer_slack(core::Tid tid, core::TimerSlack slack) override {
    return set(tid, "slack", [&](FakeWorld::Thread& thread) { thread.slack = slack.value(); });
  }
  core::Result<core::Nice> autogroup_nice(core::Pid member) override {
    const auto found = world_.processes.find(member.value());
    if (found == world_.processes.end()) return gone(core::to_string(member));
    return nice_of(world_.autogroups.at(found->second.autogroup));
  }
  core::Result<void> set_autogroup_nice(core::Pid member, core::Nice nice) override {
    const auto found = world_.processes.find(member.value());
    if (found == world_.processes.end()) return gone(core::to_string(member));
    world_.autogroups.at(found->second.autogroup) = nice.value();
    world_.log.push_back("write autogroup");
    return {};
  }

 private:
  template <typename Change>
  core::Result<void> set(core::Tid tid, const std::string& what, Change change) {
    auto* thread = world_.thread(tid.value());
    if (thread == nullptr) return gone(core::to_string(tid));
    if (thread->refuses)
      return core::fail(core::ErrorCode::denied, "set " + what + " of thread", core::to_string(tid),
                        "Operation not permitted");
    change(*thread);
    world_.log.push_back("write " + what + " " + core::to_string(tid));
    return {};
  }
  FakeWorld& world_;
};

}  // namespace apusched::doubles
