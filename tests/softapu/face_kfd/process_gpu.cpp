// SPDX-License-Identifier: MIT
#include "face_kfd/process_gpu.h"

#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace apusched::softapu {

int make_memory_file(const char* name, std::size_t bytes) {
  const int fd = static_cast<int>(syscall(SYS_memfd_create, name, MFD_CLOEXEC));
  if (fd >= 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0) return fd;
  if (fd >= 0) syscall(SYS_close, fd);
  return -1;
}

std::unique_ptr<ProcessGpu> ProcessGpu::open(const char* session, std::size_t gpu,
                                             EventTable& events) {
  auto client = SessionClient::join(session, gpu);
  if (client == nullptr) return nullptr;
  std::unique_ptr<ProcessGpu> out(new ProcessGpu(std::move(client), gpu, events));
  out->doorbell_file_ = make_memory_file("softapu-doorbells", kDoorbellBytes);
  if (out->doorbell_file_ < 0) return nullptr;
  const long address = syscall(SYS_mmap, nullptr, kDoorbellBytes, PROT_READ | PROT_WRITE,
                               MAP_SHARED, out->doorbell_file_, 0);
  if (address == -1) return nullptr;
  out->doorbells_ = reinterpret_cast<std::uint64_t*>(address);  // NOLINT: from the kernel
  return out;
}

ProcessGpu::~ProcessGpu() {
  engine_.reset();
  client_.reset();
  if (doorbells_ != nullptr) syscall(SYS_munmap, doorbells_, kDoorbellBytes);
  if (doorbell_file_ >= 0) syscall(SYS_close, doorbell_file_);
}

Engine& ProcessGpu::engine() {
  const std::lock_guard lock(mutex_);
  if (engine_ == nullptr)
    engine_ = std::make_unique<Engine>(client_->device(), client_->index(), events_, doorbells_,
                                       static_cast<std::uint32_t>(gpu_) << kQueueIdGpuShift,
                                       [this] { client_->tell(RequestKind::works); });
  return *engine_;
}

void ProcessGpu::look_again() {
  const std::lock_guard lock(mutex_);
  if (engine_ != nullptr) engine_->look_again();
}

void ProcessGpu::after_fork_in_child() {
  client_->abandon();
  mutex_.unlock();
}

int ProcessGpu::account(std::uint64_t bytes, std::uint32_t flags, bool allocate) {
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
