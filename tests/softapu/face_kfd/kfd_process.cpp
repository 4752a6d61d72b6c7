// SPDX-License-Identifier: MIT
#include "face_kfd/kfd_process.h"

#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace apusched::softapu {
namespace {

int make_file(const char* name, std::size_t bytes) {
  const int fd = static_cast<int>(syscall(SYS_memfd_create, name, MFD_CLOEXEC));
  if (fd >= 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0) return fd;
  if (fd >= 0) syscall(SYS_close, fd);
  return -1;
}

}  // namespace

std::unique_ptr<KfdProcess> KfdProcess::open(const char* session) {
  auto client = SessionClient::join(session);
  if (client == nullptr) return nullptr;
  std::unique_ptr<KfdProcess> process(new KfdProcess(std::move(client)));
  if (!process->make_files()) return nullptr;
  return process;
}

bool KfdProcess::make_files() {
  doorbell_file_ = make_file("softapu-doorbells", kDoorbellBytes);
  event_file_ = make_file("softapu-events", EventTable::kLimit * sizeof(std::uint64_t));
  if (doorbell_file_ < 0 || event_file_ < 0) return false;
  const long address = syscall(SYS_mmap, nullptr, kDoorbellBytes, PROT_READ | PROT_WRITE,
                               MAP_SHARED, doorbell_file_, 0);
  if (address == -1) return false;
  doorbells_ = reinterpret_cast<std::uint64_t*>(address);  // NOLINT: from the kernel
  return true;
}

KfdProcess::~KfdProcess() {
  events_.clear();
  engine_.reset();
  client_.reset();
  if (doorbells_ != nullptr) syscall(SYS_munmap, doorbells_, kDoorbellBytes);
  if (doorbell_file_ >= 0) syscall(SYS_close, doorbell_file_);
  if (event_file_ >= 0) syscall(SYS_close, event_file_);
}

Engine& KfdProcess::engine() {
  const std::lock_guard lock(mutex_);
  if (engine_ == nullptr)
    engine_ = std::make_unique<Engine>(client_->device(), client_->index(), events_, doorbells_);
  return *engine_;
}

int KfdProcess::file_for(std::uint64_t offset) const {
  switch (offset & kOffsetTypeMask) {
    case kDoorbellOffset:
      return doorbell_file_;
    case kEventPageOffset:
      return event_file_;
    default:
      return -1;
  }
}

void KfdProcess::mapped(std::uint64_t offset, void* address, std::size_t bytes) {
  if ((offset & kOffsetTypeMask) == kDoorbellOffset) engine().watch_doorbells(address, bytes);
}

void KfdProcess::before_fork() {
  mutex_.lock();
  events_.mutex().lock();
}

void KfdProcess::after_fork_in_parent() {
  events_.mutex().unlock();
  mutex_.unlock();
}

void KfdProcess::after_fork_in_child() {
  client_->abandon();
  events_.mutex().unlock();
  mutex_.unlock();
}

int KfdProcess::account(std::uint64_t bytes, std::uint32_t flags, bool allocate) {
  constexpr std::uint32_t kVram = 1U << 0;  // KFD_IOC_ALLOC_MEM_FLAGS_*
  constexpr std::uint32_t kGtt = 1U << 1;
  if ((flags & (kVram | kGtt)) == 0) return 0;
  {
    SharedDevice::Access access(client_->device());
    Client& me = access.state().clients[static_cast<std::uint32_t>(client_->index())];
    std::uint64_t& used = (flags & kVram) != 0 ? me.vram_used : me.gtt_used;
    if (allocate) {
      std::uint64_t all = 0;
      for (const Client& other : access.state().clients) all += other.vram_used;
      if ((flags & kVram) != 0 && all + bytes > description().kfd_pool_bytes) return ENOMEM;
    }
    used += allocate ? bytes : -bytes;
  }
  client_->tell(RequestKind::memory_changed);
  return 0;
}

}  // namespace apusched::softapu
