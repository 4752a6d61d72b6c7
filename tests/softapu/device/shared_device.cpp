// SPDX-License-Identifier: MIT
#include "device/shared_device.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <ctime>
#include <new>
#include <string_view>

// Raw system calls for open, fstat, mmap and close: this code also runs inside the preload library,
// whose own open() and mmap() must not see it.
namespace apusched::softapu {
namespace {

int raw_open(const char* path, int flags, mode_t mode) {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

SharedFile* map_file(int fd) {
  const long address =
      syscall(SYS_mmap, nullptr, sizeof(SharedFile), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == -1) return nullptr;
  return reinterpret_cast<SharedFile*>(address);  // NOLINT: the kernel speaks in integers
}

// Nobody holds the lock for so long that runs.
constexpr Nanoseconds kStoppedAfter = std::chrono::milliseconds{100};

// By SIGSTOP or a terminal; one that a debugger stopped is the debugger's.
bool is_stopped(pid_t thread) {
  char text[256];
  std::snprintf(text, sizeof text, "/proc/%d/stat", static_cast<int>(thread));
  const int fd = raw_open(text, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return false;
  const long size = syscall(SYS_read, fd, text, sizeof text);
  syscall(SYS_close, fd);
  const std::string_view stat(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  const auto name_end = stat.rfind(')');
  return name_end != std::string_view::npos && stat.substr(name_end + 1).starts_with(" T");
}

void init_mutex(pthread_mutex_t& mutex) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

}  // namespace

Nanoseconds monotonic_now() {
  timespec ts{};
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return std::chrono::seconds{ts.tv_sec} + Nanoseconds{ts.tv_nsec};
}

void futex_wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, Nanoseconds deadline) {
  // FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time.
  timespec ts{};
  timespec* timeout = nullptr;
  if (deadline != Nanoseconds::max()) {
    ts.tv_sec = static_cast<time_t>(deadline.count() / 1'000'000'000);
    ts.tv_nsec = static_cast<long>(deadline.count() % 1'000'000'000);
    timeout = &ts;
  }
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, seen, timeout, nullptr, FUTEX_BITSET_MATCH_ANY);
}

void wake_client(Client& client) {
  client.wake.fetch_add(1);
  if (client.sleeping.load() != 0) futex_wake_all(client.wake);
}

std::unique_ptr<SharedDevice> SharedDevice::create(const std::string& path,
                                                   const DeviceDescription& description) {
  const int fd = raw_open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return nullptr;
  SharedFile* file = nullptr;
  // fchmod: the session is shared by users, whatever the umask of its creator.
  if (fchmod(fd, 0666) == 0 && ftruncate(fd, sizeof(SharedFile)) == 0) file = map_file(fd);
  const int error = errno;
  syscall(SYS_close, fd);
  errno = error;
  if (file == nullptr) return nullptr;
  new (&file->state) DeviceState{};
  init_mutex(file->mutex);
  file->bytes = sizeof(SharedFile);
  file->state.description = description;
  file->state.now_ns = monotonic_now().count();
  std::atomic_ref(file->magic).store(kStateMagic, std::memory_order_release);
  return std::unique_ptr<SharedDevice>(new SharedDevice(file));
}

std::unique_ptr<SharedDevice> SharedDevice::open(const std::string& path) {
  const int fd = raw_open(path.c_str(), O_RDWR | O_CLOEXEC, 0);
  if (fd < 0) return nullptr;
  struct stat st {};
  SharedFile* file = nullptr;
  if (syscall(SYS_fstat, fd, &st) == 0 && st.st_size == static_cast<off_t>(sizeof(SharedFile)))
    file = map_file(fd);
  syscall(SYS_close, fd);
  if (file == nullptr || file->magic != kStateMagic || file->bytes != sizeof(SharedFile)) {
    errno = EPROTO;
    return nullptr;
  }
  return std::unique_ptr<SharedDevice>(new SharedDevice(file));
}

SharedDevice::~SharedDevice() {
  syscall(SYS_munmap, file_, sizeof(SharedFile));
}

void SharedDevice::runs_end_earlier(ClientIndex client) {
  wake_client(file_->state.clients[static_cast<std::uint32_t>(client)]);
}

// ThreadSanitizer of gcc 12 does not know pthread_mutex_clocklock, which would not mind that
// somebody sets the time, nor that pthread_mutex_timedlock gets the lock of a dead holder.
bool SharedDevice::lock_within(Nanoseconds time) {
  int result = pthread_mutex_trylock(&file_->mutex);
  if (result == EBUSY) {
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    const auto ns = until.tv_nsec + time.count();
    until.tv_sec += static_cast<time_t>(ns / 1'000'000'000);
    until.tv_nsec = static_cast<long>(ns % 1'000'000'000);
    result = pthread_mutex_timedlock(&file_->mutex, &until);
  }
  if (result == EOWNERDEAD) pthread_mutex_consistent(&file_->mutex);
  return result == 0 || result == EOWNERDEAD;
}

// The holder goes on until it has let go, and is stopped again. The lock's word has the holder's
// thread in it, because it is the kernel's as well (linux
// Documentation/locking/robust-futex-ABI.rst).
bool SharedDevice::lock_past_stopped_holder() {
  const auto word = __atomic_load_n(&file_->mutex.__data.__lock, __ATOMIC_RELAXED);
  const auto holder = static_cast<pid_t>(static_cast<unsigned>(word) & FUTEX_TID_MASK);
  if (holder == 0 || !is_stopped(holder) || kill(holder, SIGCONT) != 0) return false;
  const bool locked = lock_within(10 * kStoppedAfter);
  kill(holder, SIGSTOP);
  return locked;
}

// A program that is stopped while a thread of it holds the lock would stop the device for all, and
// no GPU stops with a program.
void SharedDevice::lock() {
  while (!lock_within(kStoppedAfter)) {
    std::uint32_t nobody = 0;
    if (!file_->letting_go.compare_exchange_strong(nobody, 1)) continue;
    const bool locked = lock_past_stopped_holder();
    file_->letting_go.store(0);
    if (locked) return;
  }
}

SharedDevice::Access::Access(SharedDevice& device)
    : device_(device), model_(device.file_->state, device), now_(0) {
  // A holder that died half way leaves at worst one queue's counters wrong; the supervisor drops
  // everything of a dead client anyway.
  device_.lock();
  now_ = monotonic_now();
  model_.advance(now_);
}

SharedDevice::Access::~Access() {
  pthread_mutex_unlock(&device_.file_->mutex);
}

}  // namespace apusched::softapu
