// SPDX-License-Identifier: MIT
// KFD events of one process: latches that any number of threads wait for (kfd_events.c). An
// auto-reset event set while nobody waits stays set until somebody does. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

namespace apusched::softapu {

enum class WaitResult : std::uint8_t { signalled, timeout, invalid };

class EventTable {
 public:
  // The kernel's KFD_SIGNAL_EVENT_LIMIT.
  static constexpr std::uint32_t kLimit = 4096;
  static constexpr std::chrono::milliseconds kForever = std::chrono::milliseconds::max();

  // 0: none left.
  std::uint32_t create(bool auto_reset);
  bool destroy(std::uint32_t id);
  bool set(std::uint32_t id);
  bool reset(std::uint32_t id);
  WaitResult wait(std::span<const std::uint32_t> ids, bool all, std::chrono::milliseconds timeout);
  // Ends every wait, as closing the device does.
  void clear();

  // Around fork(), so that a child never finds the table locked by a thread it does not have.
  std::mutex& mutex() { return mutex_; }

 private:
  struct Waiter {
    std::condition_variable changed;
    std::map<std::uint32_t, bool> pending;  // id -> still awaited
  };
  struct Event {
    bool auto_reset = true;
    bool set = false;
    std::vector<Waiter*> waiters;
  };
  static void deliver(std::uint32_t id, Event& event);

  std::mutex mutex_;
  std::map<std::uint32_t, Event> events_;
};

}  // namespace apusched::softapu
