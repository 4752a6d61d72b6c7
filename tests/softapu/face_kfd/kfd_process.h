// SPDX-License-Identifier: MIT
// What the kernel keeps for a process that has /dev/kfd open, and the ioctls on it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "events/event_table.h"
#include "face_kfd/process_gpu.h"

struct kfd_event_data;

namespace apusched::softapu {

// mmap offsets of /dev/kfd, by their top two bits (kfd_priv.h).
inline constexpr std::uint64_t kDoorbellOffset = std::uint64_t{3} << 62;
inline constexpr std::uint64_t kEventPageOffset = std::uint64_t{2} << 62;
inline constexpr unsigned kOffsetGpuShift = 46;
inline constexpr std::uint64_t kOffsetTypeMask = std::uint64_t{3} << 62;

class KfdProcess {
 public:
  // Null with errno set.
  static std::unique_ptr<KfdProcess> open(const char* session);
  ~KfdProcess();
  KfdProcess(const KfdProcess&) = delete;
  KfdProcess& operator=(const KfdProcess&) = delete;

  // 0, or an errno. Thread-safe.
  int ioctl(unsigned long request, void* argument);
  // Ends every wait for events: the last descriptor is being closed.
  void end_waits() { events_.clear(); }
  // The file behind an mmap offset; -1: a buffer object, plain memory will do.
  [[nodiscard]] int file_for(std::uint64_t offset) const;
  // A mapping of that file has been made for the client.
  void mapped(std::uint64_t offset, void* address, std::size_t bytes);
  // Of the GPU with this number; that of the first for one that does not exist.
  [[nodiscard]] const DeviceDescription& description(std::size_t gpu) const {
    return gpus_[gpu < gpus_.size() ? gpu : 0]->description();
  }

  // Around fork(): the child gets consistent, unlocked structures, and no engine.
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

 private:
  KfdProcess() = default;

  // Handlers answer like ioctl(); T are the structs of linux/kfd_ioctl.h.
  template <class T>
  int handle(T& arguments);
  // The errno with which a request fails because of what happened to the GPU; 0: it does not.
  // (kfd_faults.cpp)
  int refused(unsigned long request, const void* argument);
  // Those that a request is about; empty: none that exists.
  std::vector<const ProcessGpu*> gpus_of(unsigned long request, const void* argument);
  // A hardware exception's own words, for those who wait for one.
  void describe(kfd_event_data& data);
  // Null: there is none.
  ProcessGpu* gpu_with_id(std::uint32_t gpu_id);
  ProcessGpu* gpu_of_queue(std::uint32_t queue);
  [[nodiscard]] std::uint64_t doorbell_offset(const ProcessGpu& gpu) const;

  struct Buffer {
    std::uint64_t bytes = 0;
    std::uint32_t flags = 0;
    ProcessGpu* gpu = nullptr;
  };

  EventTable events_;
  std::vector<std::unique_ptr<ProcessGpu>> gpus_;  // by number; does not change
  int event_file_ = -1;
  std::mutex mutex_;  // buffers_, next_handle_
  std::map<std::uint64_t, Buffer> buffers_;
  std::uint64_t next_handle_ = 1;
};

}  // namespace apusched::softapu
