// SPDX-License-Identifier: MIT
#include "platform/linux_scheduler.hpp"

#include <sys/resource.h>

#include <cerrno>

#include "platform/errno_error.hpp"
#include "platform/proc_parse.hpp"
#include "platform/small_file.hpp"

namespace apusched::platform {
namespace {

std::string autogroup_path(core::Pid pid) {
  return "/proc/" + core::to_string(pid) + "/autogroup";
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
