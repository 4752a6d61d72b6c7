// SPDX-License-Identifier: MIT
#include "queue/doorbell_watch.h"

#include <fcntl.h>
#include <linux/ioctl.h>
#include <linux/types.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>

// System calls by number: the preload library replaces ioctl() and close(); these are for the
// kernel.
namespace apusched::softapu {
namespace {

long raw_ioctl(int fd, unsigned long request, void* argument) {
  return syscall(SYS_ioctl, fd, request, argument);
}

void raw_close(int& fd) {
  if (fd >= 0) syscall(SYS_close, fd);
  fd = -1;
}

}  // namespace

DoorbellWatch::DoorbellWatch() : wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

DoorbellWatch::~DoorbellWatch() {
  raw_close(uffd_);
  raw_close(wake_fd_);
}

bool DoorbellWatch::open_uffd() {
  // For tests of the polling fallback.
  if (std::getenv("SOFTAPU_NO_USERFAULTFD") != nullptr) return false;
  // USER_MODE_ONLY works without privileges whatever vm.unprivileged_userfaultfd says.
  int fd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM;
  if (fd >= 0 && raw_ioctl(fd, UFFDIO_API, &api) != 0) raw_close(fd);
  uffd_ = fd;
  return fd >= 0;
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

std::size_t DoorbellWatch::wait(std::chrono::nanoseconds timeout) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const timespec until{timeout.count() / kSecond, timeout.count() % kSecond};
  pollfd fds[2] = {{wake_fd_, POLLIN, 0}, {-1, POLLIN, 0}};
  {
    // Set before a mapping can be armed, by a thread that then wakes this one.
    const std::lock_guard lock(regions_mutex_);
    fds[1].fd = uffd_;
  }
  const bool for_ever = timeout == std::chrono::nanoseconds::max();
  if (syscall(SYS_ppoll, fds, 2, for_ever ? nullptr : &until, nullptr, 0) <= 0) return 0;
  std::uint64_t count = 0;
  if (fds[0].revents != 0) syscall(SYS_read, wake_fd_, &count, sizeof count);
  return fds[1].revents != 0 ? read_faults() : 0;
}

std::size_t DoorbellWatch::read_faults() const {
  uffd_msg messages[8];
  const long got = syscall(SYS_read, uffd_, messages, sizeof messages);
  std::size_t faults = 0;
  for (long i = 0; (i + 1) * static_cast<long>(sizeof(uffd_msg)) <= got; i++)
    if (messages[i].event == UFFD_EVENT_PAGEFAULT) faults++;
  return faults;
}

void DoorbellWatch::wake() const {
  constexpr std::uint64_t kOne = 1;
  syscall(SYS_write, wake_fd_, &kOne, sizeof kOne);
}

}  // namespace apusched::softapu
