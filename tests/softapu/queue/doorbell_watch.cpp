// SPDX-License-Identifier: MIT
#include "queue/doorbell_watch.h"

#include <fcntl.h>
#include <linux/ioctl.h>
#include <linux/types.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace apusched::softapu {
namespace {

// The preload library replaces ioctl() and close(); these are for the kernel.
long raw_ioctl(int fd, unsigned long request, void* argument) {
  return syscall(SYS_ioctl, fd, request, argument);
}

void raw_close(int& fd) {
  if (fd >= 0) syscall(SYS_close, fd);
  fd = -1;
}

}  // namespace

DoorbellWatch::DoorbellWatch(FaultCallback on_fault) : on_fault_(std::move(on_fault)) {}

DoorbellWatch::~DoorbellWatch() {
  if (thread_.joinable()) {
    eventfd_write(stop_fd_, 1);
    thread_.join();
  }
  raw_close(uffd_);
  raw_close(stop_fd_);
}

bool DoorbellWatch::open_uffd() {
  // For tests of the polling fallback.
  if (std::getenv("SOFTAPU_NO_USERFAULTFD") != nullptr) return false;
  // USER_MODE_ONLY works without privileges whatever vm.unprivileged_userfaultfd says.
  uffd_ = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
  if (uffd_ < 0) return false;
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM;
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  if (raw_ioctl(uffd_, UFFDIO_API, &api) != 0 || stop_fd_ < 0) return false;
  // The client's signal handlers have no business on this thread.
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return true;
}

bool DoorbellWatch::add(void* address, std::size_t bytes) {
  const std::lock_guard lock(regions_mutex_);
  if (usable_ && uffd_ < 0) usable_ = open_uffd();
  if (!usable_) return false;
  uffdio_register range{};
  range.range = {reinterpret_cast<std::uint64_t>(address), bytes};
  range.mode = UFFDIO_REGISTER_MODE_WP;
  usable_ = raw_ioctl(uffd_, UFFDIO_REGISTER, &range) == 0;
  if (usable_) regions_.push_back({address, bytes});
  return usable_;
}

bool DoorbellWatch::protect(const Region& region, bool on) const {
  uffdio_writeprotect range{};
  range.range = {reinterpret_cast<std::uint64_t>(region.address), region.bytes};
  range.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0;
  while (raw_ioctl(uffd_, UFFDIO_WRITEPROTECT, &range) != 0)
    if (errno != EAGAIN) return false;  // EAGAIN: mappings are changing just now
  return true;
}

bool DoorbellWatch::arm() {
  const std::lock_guard lock(regions_mutex_);
  if (!usable_ || regions_.empty()) return false;
  // A mapping that its owner took away cannot ring; forget it.
  std::erase_if(regions_, [this](const Region& region) { return !protect(region, true); });
  return !regions_.empty();
}

void DoorbellWatch::disarm() {
  const std::lock_guard lock(regions_mutex_);
  for (const Region& region : regions_) protect(region, false);
}

void DoorbellWatch::run() {
  pthread_setname_np(pthread_self(), "softapu-watch");
  for (;;) {
    pollfd fds[2] = {{uffd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    poll(fds, 2, -1);
    if (fds[1].revents != 0) return;
    uffd_msg message;
    bool fault = false;
    while (syscall(SYS_read, uffd_, &message, sizeof message) == sizeof message)
      fault |= message.event == UFFD_EVENT_PAGEFAULT;
    if (!fault) continue;
    disarm();
    on_fault_();
  }
}

}  // namespace apusched::softapu
