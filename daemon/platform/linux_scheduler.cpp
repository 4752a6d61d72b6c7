// SPDX-License-Identifier: MIT
#include "platform/linux_scheduler.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "platform/errno_error.hpp"
#include "platform/proc_parse.hpp"
#include "platform/small_file.hpp"

namespace apusched::platform {
namespace {

// linux include/uapi/linux/ioprio.h; the C library has none of it.
constexpr int kIoOfThread = 1;
constexpr int kIoClassShift = 13;
constexpr long kIoClassMask = 7;
constexpr long kIoDataMask = (1L << kIoClassShift) - 1;

std::string autogroup_path(core::Pid pid) {
  return "/proc/" + core::to_string(pid) + "/autogroup";
}

/// The file is in /proc/TID, which lookups find for any thread, and not in /proc/PID/task/TID
/// (linux fs/proc/base.c, tgid_base_stuff). Of another process it needs CAP_SYS_NICE, to read too.
std::string timer_slack_path(core::Tid tid) {
  return "/proc/" + core::to_string(tid) + "/timerslack_ns";
}

}  // namespace

core::Result<core::Nice> LinuxScheduler::thread_nice(core::Tid tid) {
  errno = 0;  // -1 is also a nice value
  const int value = ::getpriority(PRIO_PROCESS, static_cast<id_t>(tid.value()));
  if (errno != 0)
    return tl::unexpected(errno_error(errno, "read nice of thread", core::to_string(tid)));
  return *core::Nice::make(value);
}

core::Result<void> LinuxScheduler::set_thread_nice(core::Tid tid, core::Nice nice) {
  if (::setpriority(PRIO_PROCESS, static_cast<id_t>(tid.value()), nice.value()) != 0)
    return tl::unexpected(errno_error(errno, "set nice of thread", core::to_string(tid)));
  return {};
}

core::Result<core::SchedulingPolicy> LinuxScheduler::thread_policy(core::Tid tid) {
  const int policy = ::sched_getscheduler(tid.value());
  if (policy < 0)
    return tl::unexpected(errno_error(errno, "read policy of thread", core::to_string(tid)));
  switch (policy & ~SCHED_RESET_ON_FORK) {
    case SCHED_OTHER:
      return core::SchedulingPolicy::normal;
    case SCHED_BATCH:
      return core::SchedulingPolicy::batch;
    case SCHED_IDLE:
      return core::SchedulingPolicy::idle;
    default:
      return core::SchedulingPolicy::other;
  }
}

core::Result<void> LinuxScheduler::set_thread_policy(core::Tid tid, core::SchedulingPolicy policy) {
  const int before = ::sched_getscheduler(tid.value());
  if (before < 0)
    return tl::unexpected(errno_error(errno, "read policy of thread", core::to_string(tid)));
  const int wanted = policy == core::SchedulingPolicy::idle    ? SCHED_IDLE
                     : policy == core::SchedulingPolicy::batch ? SCHED_BATCH
                                                               : SCHED_OTHER;
  const sched_param none{};
  if (::sched_setscheduler(tid.value(), wanted | (before & SCHED_RESET_ON_FORK), &none) != 0)
    return tl::unexpected(errno_error(errno, "set policy of thread", core::to_string(tid)));
  return {};
}

core::Result<core::IoPriority> LinuxScheduler::thread_io(core::Tid tid) {
  const auto value = ::syscall(SYS_ioprio_get, kIoOfThread, tid.value());
  if (value < 0)
    return tl::unexpected(errno_error(errno, "read I/O priority of thread", core::to_string(tid)));
  const auto io_class = static_cast<core::IoClass>((value >> kIoClassShift) & kIoClassMask);
  // Without a class, kernels before 5.18 answer with the middle level and refuse to take it back.
  if (io_class == core::IoClass::none) return core::IoPriority{};
  if (io_class > core::IoClass::idle)
    return core::fail(core::ErrorCode::unsupported, "read I/O priority of thread",
                      core::to_string(tid), "unknown class");
  return core::IoPriority{io_class, static_cast<std::uint16_t>(value & kIoDataMask)};
}

core::Result<void> LinuxScheduler::set_thread_io(core::Tid tid, core::IoPriority priority) {
  const long value = (static_cast<long>(priority.io_class) << kIoClassShift) | priority.data;
  if (::syscall(SYS_ioprio_set, kIoOfThread, tid.value(), value) != 0)
    return tl::unexpected(errno_error(errno, "set I/O priority of thread", core::to_string(tid)));
  return {};
}

core::Result<core::TimerSlack> LinuxScheduler::thread_timer_slack(core::Tid tid) {
  const auto path = timer_slack_path(tid);
  const auto text = read_small_file(path, 32);
  if (!text) return tl::unexpected(text.error());
  const auto slack = core::TimerSlack::parse(std::string_view(*text).substr(0, text->find('\n')));
  if (!slack) return core::fail(core::ErrorCode::unsupported, "read", path, "malformed text");
  return *slack;
}

core::Result<void> LinuxScheduler::set_thread_timer_slack(core::Tid tid, core::TimerSlack slack) {
  return write_small_file(timer_slack_path(tid), core::to_string(slack));
}

core::Result<core::Nice> LinuxScheduler::autogroup_nice(core::Pid member) {
  const auto text = read_small_file(autogroup_path(member), 256);
  if (!text) return tl::unexpected(text.error());
  const auto parsed = parse_autogroup(*text);
  if (!parsed)
    return core::fail(core::ErrorCode::failed, "read", autogroup_path(member), "malformed text");
  return parsed->nice;
}

core::Result<void> LinuxScheduler::set_autogroup_nice(core::Pid member, core::Nice nice) {
  return write_small_file(autogroup_path(member), core::to_string(nice));
}

}  // namespace apusched::platform
