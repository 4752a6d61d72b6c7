// SPDX-License-Identifier: MIT
#include "face_kfd/kfd_process.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace apusched::softapu {
namespace {

std::size_t gpu_in(std::uint64_t offset) {
  return (offset & ~kOffsetTypeMask) >> kOffsetGpuShift;
}

}  // namespace

std::unique_ptr<KfdProcess> KfdProcess::open(const char* session) {
  std::unique_ptr<KfdProcess> process(new KfdProcess);
  const std::size_t count = SessionClient::gpus(session);
  for (std::size_t gpu = 0; gpu == 0 || gpu < count; gpu++) {
    process->gpus_.push_back(ProcessGpu::open(session, gpu, process->events_));
    if (process->gpus_.back() == nullptr) return nullptr;
  }
  process->event_file_ =
      make_memory_file("softapu-events", EventTable::kLimit * sizeof(std::uint64_t));
  return process->event_file_ < 0 ? nullptr : std::move(process);
}

KfdProcess::~KfdProcess() {
  events_.clear();
  gpus_.clear();
  if (event_file_ >= 0) syscall(SYS_close, event_file_);
}

ProcessGpu* KfdProcess::gpu_with_id(std::uint32_t gpu_id) {
  for (const auto& gpu : gpus_)
    if (gpu->description().gpu_id == gpu_id) return gpu.get();
  return nullptr;
}

ProcessGpu* KfdProcess::gpu_of_queue(std::uint32_t queue) {
  const std::size_t gpu = queue >> kQueueIdGpuShift;
  return gpu < gpus_.size() ? gpus_[gpu].get() : nullptr;
}

int KfdProcess::file_for(std::uint64_t offset) const {
  switch (offset & kOffsetTypeMask) {
    case kDoorbellOffset:
      return gpu_in(offset) < gpus_.size() ? gpus_[gpu_in(offset)]->doorbell_file() : -1;
    case kEventPageOffset:
      return event_file_;
    default:
      return -1;
  }
}

void KfdProcess::mapped(std::uint64_t offset, void* address, std::size_t bytes) {
  if ((offset & kOffsetTypeMask) == kDoorbellOffset && gpu_in(offset) < gpus_.size())
    gpus_[gpu_in(offset)]->engine().watch_doorbells(address, bytes);
}

void KfdProcess::before_fork() {
  mutex_.lock();
  for (const auto& gpu : gpus_) gpu->before_fork();
  events_.mutex().lock();
}

void KfdProcess::after_fork_in_parent() {
  events_.mutex().unlock();
  for (const auto& gpu : gpus_) gpu->after_fork_in_parent();
  mutex_.unlock();
}

void KfdProcess::after_fork_in_child() {
  events_.mutex().unlock();
  for (const auto& gpu : gpus_) gpu->after_fork_in_child();
  mutex_.unlock();
}

}  // namespace apusched::softapu
