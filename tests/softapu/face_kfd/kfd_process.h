// SPDX-License-Identifier: MIT
// What the kernel keeps for a process that has /dev/kfd open, and the ioctls on it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "events/event_table.h"
#include "face_kfd/session_client.h"
#include "queue/engine.h"

struct kfd_event_data;

namespace apusched::softapu {

// mmap offsets of /dev/kfd, by their top two bits (kfd_priv.h).
inline constexpr std::uint64_t kDoorbellOffset = std::uint64_t{3} << 62;
inline constexpr std::uint64_t kEventPageOffset = std::uint64_t{2} << 62;
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
  [[nodiscard]] const DeviceDescription& description() const {
    return client_->device().unlocked().description;
  }

  // Around fork(): the child gets consistent, unlocked structures, and no engine.
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

 private:
  explicit KfdProcess(std::unique_ptr<SessionClient> client) : client_(std::move(client)) {}

  // Handlers answer like ioctl(); T are the structs of linux/kfd_ioctl.h.
  template <class T>
  int handle(T& arguments);
  bool make_files();
  Engine& engine();
  // The errno with which a request fails because of what happened to the GPU; 0: it does not.
  // (kfd_faults.cpp)
  int refused(unsigned long request);
  // A hardware exception's own words, for those who wait for one.
  void describe(kfd_event_data& data);
  int account(std::uint64_t bytes, std::uint32_t flags, bool allocate);

  struct Buffer {
    std::uint64_t bytes = 0;
    std::uint32_t flags = 0;
  };

  std::unique_ptr<SessionClient> client_;
  EventTable events_;
  int doorbell_file_ = -1;
  int event_file_ = -1;
  std::uint64_t* doorbells_ = nullptr;
  std::mutex mutex_;  // buffers_, next_handle_, engine_ (creation)
  std::map<std::uint64_t, Buffer> buffers_;
  std::uint64_t next_handle_ = 1;
  std::unique_ptr<Engine> engine_;
};

}  // namespace apusched::softapu
