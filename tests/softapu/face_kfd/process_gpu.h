// SPDX-License-Identifier: MIT
// What the kernel keeps for a process on one GPU: its place on the device, its doorbells, its
// queues.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "events/event_table.h"
#include "face_kfd/session_client.h"
#include "queue/engine.h"

namespace apusched::softapu {

// Queue ids are unique within a process: the GPU's number is in their upper half.
inline constexpr std::uint32_t kQueueIdGpuShift = 16;

class ProcessGpu {
 public:
  // Null with errno set. `events` outlives it.
  static std::unique_ptr<ProcessGpu> open(const char* session, std::size_t gpu, EventTable& events);
  ~ProcessGpu();
  ProcessGpu(const ProcessGpu&) = delete;
  ProcessGpu& operator=(const ProcessGpu&) = delete;

  [[nodiscard]] SessionClient& client() const { return *client_; }
  [[nodiscard]] DeviceState& state() const { return client_->device().unlocked(); }
  [[nodiscard]] const DeviceDescription& description() const { return state().description; }
  [[nodiscard]] std::uint64_t number() const { return gpu_; }
  [[nodiscard]] int doorbell_file() const { return doorbell_file_; }
  // Made at first use. Thread-safe.
  Engine& engine();
  void look_again();
  // 0, or ENOMEM.
  int account(std::uint64_t bytes, std::uint32_t flags, bool allocate);

  // Around fork().
  void before_fork() { mutex_.lock(); }
  void after_fork_in_parent() { mutex_.unlock(); }
  void after_fork_in_child();

 private:
  ProcessGpu(std::unique_ptr<SessionClient> client, std::size_t gpu, EventTable& events)
      : client_(std::move(client)), gpu_(gpu), events_(events) {}

  std::unique_ptr<SessionClient> client_;
  std::size_t gpu_;
  EventTable& events_;
  int doorbell_file_ = -1;
  std::uint64_t* doorbells_ = nullptr;
  std::mutex mutex_;  // engine_ (creation)
  std::unique_ptr<Engine> engine_;
};

// A memory file for mappings; -1 with errno set.
[[nodiscard]] int make_memory_file(const char* name, std::size_t bytes);

}  // namespace apusched::softapu
