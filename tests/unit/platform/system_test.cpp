// SPDX-License-Identifier: MIT
// The adapters on the real kernel, with processes and threads of the test's own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "platform/errno_error.hpp"
#include "platform/linux_scheduler.hpp"
#include "platform/procfs_processes.hpp"
#include "platform/sd_event_loop.hpp"

namespace apusched::platform {
namespace {

using namespace std::chrono_literals;

core::Pid own_pid() {
  return *core::Pid::make(::getpid());
}

/// A child that waits to be killed.
class Child {
 public:
  explicit Child(bool in_own_session = false) {
    std::array<int, 2> ready{};
    if (::pipe2(ready.data(), O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (in_own_session) ::setsid();  // the kernel makes the group after it has set the session
      ::close(ready[1]);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char byte = 0;
    // It ends when the child has closed its end.
    if (::read(ready[0], &byte, 1) != 0) std::abort();
    ::close(ready[0]);
  }
  ~Child() { end(); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  [[nodiscard]] core::Pid pid() const { return *core::Pid::make(pid_); }

 private:
  pid_t pid_ = -1;
};

bool same_scheduling_group(const core::Placement& one, const core::Placement& other) {
  if (one.cpu_group != "/" || other.cpu_group != "/") return one.cpu_group == other.cpu_group;
  return !one.autogroup_enabled || one.autogroup == other.autogroup;
}

/// Beside a child in the session of this process and one in a session of its own.
void expect_group_as_placed(core::Pid pid) {
  ProcfsProcesses processes;
  Child child;
  Child stranger(true);
  const auto group = processes.sharing_group(pid);
  const auto at = processes.placement(pid);
  ASSERT_TRUE(group);
  ASSERT_TRUE(at);
  for (const auto other : {pid, own_pid(), child.pid(), stranger.pid()}) {
    const auto other_at = processes.placement(other);
    ASSERT_TRUE(other_at);
    EXPECT_EQ(std::ranges::find(*group, other) != group->end(),
              same_scheduling_group(*at, *other_at))
        << "process " << other.value() << " beside " << pid.value();
  }
}

TEST(Groups, of_a_session_are_found) {
  expect_group_as_placed(own_pid());
}

TEST(Groups, of_the_first_process_are_those_without_a_session_group) {
  expect_group_as_placed(*core::Pid::make(1));
}

/// A cgroup v2 tree of plain files.
class Tree {
 public:
  Tree() : root_(std::filesystem::temp_directory_path() / ("tree-" + std::to_string(::getpid()))) {}
  ~Tree() { std::filesystem::remove_all(root_); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  void add(const std::string& path, bool populated, const std::string& procs = {}) {
    std::filesystem::create_directories(root_ / path);
    std::ofstream(root_ / path / "cgroup.events") << "populated " << populated << "\nfrozen 0\n";
    std::ofstream(root_ / path / "cgroup.procs") << procs;
  }
  [[nodiscard]] std::string root() const { return root_.string(); }

 private:
  std::filesystem::path root_;
};

TEST(Groups, that_share_a_slice_are_found_where_they_have_processes) {
  Tree tree;
  tree.add("apu.slice", true);
  tree.add("apu.slice/llama.service", true);
  tree.add("apu.slice/ended.service", false);
  ProcfsProcesses processes(tree.root());
  EXPECT_EQ(processes.occupied_beside("/apu.slice", "llama.service"), "");
  tree.add("apu.slice/other.service", true);
  EXPECT_EQ(processes.occupied_beside("/apu.slice", "llama.service"), "other.service");
  EXPECT_EQ(processes.occupied_beside("/apu.slice", "other.service"), "llama.service");
  tree.add("apu.slice", true, "17\n");
  EXPECT_EQ(processes.occupied_beside("/apu.slice", "llama.service"), "processes of its own");
  EXPECT_FALSE(processes.occupied_beside("/none.slice", "llama.service"));
}

TEST(Processes, follow_a_process_to_its_end) {
  ProcfsProcesses processes;
  Child child;
  const auto pid = child.pid();
  const auto handle = processes.open(pid);
  ASSERT_TRUE(handle);
  EXPECT_TRUE((*handle)->alive());
  const auto facts = processes.facts(pid);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->uid, ::getuid());
  EXPECT_FALSE(facts->kernel_thread);
  const auto threads = processes.threads(pid, 10);
  ASSERT_TRUE(threads);
  // ThreadSanitizer gives a child of a fork a second one.
  EXPECT_EQ(
      std::count_if(threads->begin(), threads->end(),
                    [&](const auto& thread) { return thread.key.tid.value() == pid.value(); }),
      1)
      << "the main thread, once";
  const auto children = processes.children(own_pid());
  ASSERT_TRUE(children);
  EXPECT_NE(std::find(children->begin(), children->end(), pid), children->end());
  child.end();
  EXPECT_FALSE((*handle)->alive());
  EXPECT_EQ(processes.facts(pid).error().code, core::ErrorCode::gone);
  EXPECT_EQ(processes.threads(pid, 10).error().code, core::ErrorCode::gone);
  EXPECT_EQ(processes.open(pid).error().code, core::ErrorCode::gone);
}

TEST(Scheduler, changes_the_policy_of_one_thread_and_keeps_its_nice_and_what_fork_resets) {
  Child child;
  const auto tid = *core::Tid::make(child.pid().value());
  LinuxScheduler scheduler;
  ASSERT_TRUE(scheduler.set_thread_nice(tid, core::Nice::of<7>()));
  const sched_param none{};
  ASSERT_EQ(::sched_setscheduler(tid.value(), SCHED_OTHER | SCHED_RESET_ON_FORK, &none), 0);
  for (const auto policy : {core::SchedulingPolicy::idle, core::SchedulingPolicy::batch,
                            core::SchedulingPolicy::normal}) {
    ASSERT_TRUE(scheduler.set_thread_policy(tid, policy));
    EXPECT_EQ(*scheduler.thread_policy(tid), policy);
    EXPECT_EQ(*scheduler.thread_nice(tid), core::Nice::of<7>());
    EXPECT_NE(::sched_getscheduler(tid.value()) & SCHED_RESET_ON_FORK, 0);
  }
  child.end();
  EXPECT_EQ(scheduler.thread_policy(tid).error().code, core::ErrorCode::gone);
  EXPECT_EQ(scheduler.set_thread_policy(tid, core::SchedulingPolicy::idle).error().code,
            core::ErrorCode::gone);
}

TEST(Scheduler, changes_the_io_priority_of_one_thread_and_back) {
  Child child;
  const auto tid = *core::Tid::make(child.pid().value());
  LinuxScheduler scheduler;
  const auto before = scheduler.thread_io(tid);
  ASSERT_TRUE(before);
  for (const auto io : {core::IoPriority{core::IoClass::idle, 0},
                        core::IoPriority{core::IoClass::best_effort, 7}, *before}) {
    ASSERT_TRUE(scheduler.set_thread_io(tid, io));
    EXPECT_EQ(*scheduler.thread_io(tid), io);
  }
  child.end();
  EXPECT_EQ(scheduler.thread_io(tid).error().code, core::ErrorCode::gone);
  EXPECT_EQ(scheduler.set_thread_io(tid, *before).error().code, core::ErrorCode::gone);
}

TEST(Scheduler, changes_the_timer_slack_of_one_thread_and_back) {
  Child child;
  const auto tid = *core::Tid::make(child.pid().value());
  LinuxScheduler scheduler;
  const auto before = scheduler.thread_timer_slack(tid);
  ASSERT_TRUE(before);
  for (const auto slack : {core::TimerSlack::of<1>(), *before}) {
    ASSERT_TRUE(scheduler.set_thread_timer_slack(tid, slack));
    EXPECT_EQ(*scheduler.thread_timer_slack(tid), slack);
  }
  child.end();
  EXPECT_EQ(scheduler.thread_timer_slack(tid).error().code, core::ErrorCode::gone);
  EXPECT_EQ(scheduler.set_thread_timer_slack(tid, *before).error().code, core::ErrorCode::gone);
}

TEST(Processes, a_descriptor_that_is_no_pidfd_is_refused) {
  ProcfsProcesses processes;
  const auto handle = processes.adopt(0);
  ASSERT_FALSE(handle);
  EXPECT_EQ(handle.error().code, core::ErrorCode::invalid_input);
}

TEST(Processes, more_threads_than_the_limit_is_said) {
  ProcfsProcesses processes;
  std::atomic<bool> stop{false};
  std::thread extra([&] { stop.wait(false); });
  const auto threads = processes.threads(own_pid(), 1);
  stop = true;
  stop.notify_all();
  extra.join();
  ASSERT_FALSE(threads);
  EXPECT_EQ(threads.error().code, core::ErrorCode::limit_reached);
}

TEST(Processes, may_run_where_any_of_their_threads_may) {
  ProcfsProcesses processes;
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  std::size_t first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  const auto everywhere = processes.affinity(own_pid(), 16);
  ASSERT_TRUE(everywhere);
  EXPECT_EQ(everywhere->cpus.count(), static_cast<std::size_t>(CPU_COUNT(&before)));
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  std::atomic<bool> stop = false;
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  std::thread thread([&] { stop.wait(false); });  // it inherits the one
  const auto here = processes.affinity(own_pid(), 16);
  EXPECT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  const auto both = processes.affinity(own_pid(), 16);
  const auto limited = processes.affinity(own_pid(), 1);
  stop = true;
  stop.notify_all();
  thread.join();
  ASSERT_TRUE(here);
  EXPECT_EQ(here->cpus, core::CpuSet().set(first));
  EXPECT_GE(here->threads, 2U);  // a sanitizer may have one of its own
  ASSERT_TRUE(both);
  EXPECT_EQ(both->cpus, everywhere->cpus);
  EXPECT_EQ(limited.error().code, core::ErrorCode::limit_reached);
  Child child;
  const auto pid = child.pid();
  child.end();
  EXPECT_EQ(processes.affinity(pid, 16).error().code, core::ErrorCode::gone);
}

TEST(Processes, find_a_member_of_the_own_session) {
  ProcfsProcesses processes;
  const auto placement = processes.placement(own_pid());
  ASSERT_TRUE(placement);
  if (!placement->autogroup) return;  // a kernel without autogroups: nothing to find
  const auto member = processes.member_of_autogroup(*placement->autogroup);
  ASSERT_TRUE(member);
  EXPECT_EQ(processes.placement(*member)->autogroup, placement->autogroup);
  EXPECT_EQ(processes.member_of_autogroup("/autogroup-999999999").error().code,
            core::ErrorCode::gone);
}

TEST(Scheduler, sets_one_thread_and_reads_it_back) {
  LinuxScheduler scheduler;
  Child child;
  const auto tid = *core::Tid::make(child.pid().value());
  ASSERT_TRUE(scheduler.set_thread_nice(tid, core::Nice::of<7>()));
  EXPECT_EQ(*scheduler.thread_nice(tid), core::Nice::of<7>());
  child.end();
  EXPECT_EQ(scheduler.set_thread_nice(tid, core::Nice::of<8>()).error().code,
            core::ErrorCode::gone);
}

TEST(Errno, gone_is_told_from_denied_and_unsupported) {
  EXPECT_EQ(errno_code(ESRCH), core::ErrorCode::gone);
  EXPECT_EQ(errno_code(ENOENT), core::ErrorCode::gone);
  EXPECT_EQ(errno_code(EPERM), core::ErrorCode::denied);
  EXPECT_EQ(errno_code(EINVAL), core::ErrorCode::unsupported);
  EXPECT_EQ(errno_code(EIO), core::ErrorCode::failed);
}

class Loop : public ::testing::Test {
 protected:
  Loop() : loop_(std::move(*SdEventLoop::create())) {}
  std::unique_ptr<SdEventLoop> loop_;
};

TEST_F(Loop, runs_what_was_deferred_before_it_looks_at_descriptors) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  ASSERT_EQ(::write(pipe[1], "x", 1), 1);
  std::string order;
  const auto watch = loop_->watch_readable(pipe[0], [&] {
    order += "r";
    loop_->quit(0);
  });
  loop_->defer([&] { order += "d"; });
  ASSERT_TRUE(loop_->run());
  EXPECT_EQ(order, "dr");
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_F(Loop, a_subscription_may_be_dropped_in_its_own_callback) {
  std::unique_ptr<ports::Subscription> timer;
  int fired = 0;
  timer = loop_->after(1us, [&] {
    ++fired;
    timer.reset();
    loop_->quit(0);
  });
  ASSERT_TRUE(loop_->run());
  EXPECT_EQ(fired, 1);
}

TEST_F(Loop, a_dropped_timer_does_not_fire) {
  bool fired = false;
  auto timer = loop_->after(1us, [&] { fired = true; });
  timer.reset();
  const auto end = loop_->after(1000us, [&] { loop_->quit(3); });
  EXPECT_EQ(*loop_->run(), 3);
  EXPECT_FALSE(fired);
}

TEST_F(Loop, reaps_a_child_and_tells_its_exit) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(7);
  int seen = -1;
  const auto watch = loop_->watch_child(pid, [&](int status) {
    seen = WEXITSTATUS(status);
    loop_->quit(0);
  });
  ASSERT_TRUE(watch);
  ASSERT_TRUE(loop_->run());
  EXPECT_EQ(seen, 7);
}

}  // namespace
}  // namespace apusched::platform
