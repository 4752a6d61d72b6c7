// SPDX-License-Identifier: MIT
// The queues of one client process: one thread that watches doorbells, feeds the packet
// processors and completes their kernels; another passes on what other processes wake it for. While
// nothing happens both sleep without a timer.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "device/shared_device.h"
#include "events/event_table.h"
#include "queue/doorbell_watch.h"
#include "queue/host_signals.h"
#include "queue/kernels.h"
#include "queue/packet_processor.h"

namespace apusched::softapu {

// Two pages of 64-bit doorbells per process, as KFD hands out on gfx9 and later.
inline constexpr std::size_t kDoorbells = 1024;
inline constexpr std::size_t kDoorbellBytes = kDoorbells * sizeof(std::uint64_t);

struct QueueRequest {
  std::uint64_t ring_address = 0;
  std::uint32_t ring_bytes = 0;  // power of two
  std::uint64_t read_pointer_address = 0;
  std::int32_t priority = 0;
  std::uint32_t percent = 100;
};

struct CreatedQueue {
  std::uint32_t id = 0;
  std::uint32_t doorbell = 0;  // index
  QueueIndex index{};
};

class Engine {
 public:
  // Called on the engine's thread when a device at rest has work again.
  using WorkCallback = std::function<void()>;

  // `doorbells`: kDoorbells words, a mapping of our own that is never write-protected.
  // All outlive the engine.
  Engine(SharedDevice& device, ClientIndex client, EventTable& events, std::uint64_t* doorbells,
         std::uint32_t first_id, WorkCallback on_work);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Empty: no slot left, or a malformed request.
  std::optional<CreatedQueue> create_queue(const QueueRequest& request);
  bool update_queue(std::uint32_t id, std::uint32_t percent, std::int32_t priority);
  bool set_mask(std::uint32_t id, const CuMask& mask);
  std::optional<QueueIndex> destroy_queue(std::uint32_t id);
  void watch_doorbells(void* address, std::size_t bytes);
  // Something that a barrier may wait for has changed. Any thread.
  void look_again();

 private:
  class Queue;
  struct Plan {
    Nanoseconds next_end = Nanoseconds::max();
    bool waits_for_signal = false;
  };

  void run();
  void pass_wakes_on();
  bool step(Plan& plan);
  void notice_loss();
  [[nodiscard]] bool doorbell_waiting();
  void on_faults(std::size_t count);
  void note_ring();
  void sleep(const Plan& plan, std::uint32_t seen);
  Nanoseconds poll_deadline(const Plan& plan, Nanoseconds now);
  Client& client();
  std::unique_lock<std::mutex> control();

  SharedDevice& device_;
  ClientIndex client_;
  std::uint64_t* doorbells_;
  EventTable& events_;
  HostSignals signals_;
  KernelTable kernels_;
  WorkCallback on_work_;
  std::mutex mutex_;                       // queues_
  std::atomic<std::uint32_t> waiting_{0};  // threads that want mutex_: the engine stands back
  std::map<std::uint32_t, std::unique_ptr<Queue>> queues_;
  std::uint32_t next_id_;
  bool lost_ = false;  // engine thread only
  std::atomic<bool> stop_{false};
  // Engine thread only.
  bool landing_ = false;  // a store that faulted may not have landed
  Nanoseconds landing_since_{0};
  Nanoseconds backoff_;
  Nanoseconds progressed_{0};  // last time
  Nanoseconds spin_until_{0};
  Nanoseconds spin_;
  bool spin_pays_ = false;
  DoorbellWatch watch_;
  std::thread thread_;
  std::thread waker_;
};

}  // namespace apusched::softapu
