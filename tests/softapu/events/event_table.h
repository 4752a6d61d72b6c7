// SPDX-License-Identifier: MIT
// KFD events of one process: latches that any number of threads wait for (kfd_events.c). Every
// thread that waits for an auto-reset event sees each set() of it once, also one from before it
// waited. Linux before 6.5 gives such a set() to the first thread only; where two threads wait for
// one signal, as ROCr does when it destroys a queue, the other then sleeps for ever (6.5 has event
// ages against that). The model has the newer behaviour, or every test would hang now and then.
// Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace apusched::softapu {

enum class WaitResult : std::uint8_t { signalled, timeout, invalid };

class EventTable {
 public:
  // The kernel's KFD_SIGNAL_EVENT_LIMIT.
  static constexpr std::uint32_t kLimit = 4096;
  static constexpr std::uint32_t kHwException = 3;  // KFD_IOC_EVENT_HW_EXCEPTION
  static constexpr std::chrono::milliseconds kForever = std::chrono::milliseconds::max();

  // `type`: a KFD_IOC_EVENT_*. 0: none left.
  std::uint32_t create(bool auto_reset, std::uint32_t type = 0);
  bool destroy(std::uint32_t id);
  bool set(std::uint32_t id);
  bool reset(std::uint32_t id);
  // Sets every event of a type.
  void raise(std::uint32_t type);
  [[nodiscard]] bool is_of_type(std::uint32_t id, std::uint32_t type);
  // `which`, where not null, gets those that were set.
  WaitResult wait(std::span<const std::uint32_t> ids, bool all, std::chrono::milliseconds timeout,
                  std::vector<std::uint32_t>* which = nullptr);
  // Ends every wait, as closing the device does.
  void clear();

  // Around fork(), so that a child never finds the table locked by a thread it does not have.
  std::mutex& mutex() { return mutex_; }

 private:
  struct Waiter {
    std::condition_variable changed;
    std::map<std::uint32_t, bool> pending;  // id -> still awaited
    std::thread::id thread = std::this_thread::get_id();
  };
  struct Event {
    bool auto_reset = true;
    std::uint32_t type = 0;
    bool set = false;                               // manual reset
    std::uint64_t age = 0;                          // auto reset: how often it was set
    std::uint64_t gone = 0;                         // ages up to here were reset
    std::map<std::thread::id, std::uint64_t> seen;  // the age each thread has seen
    std::vector<Waiter*> waiters;
  };
  static void signal(std::uint32_t id, Event& event);
  static void deliver(std::uint32_t id, Event& event);
  // Until done() is true, or the time is over. (event_table.cpp)
  template <class Condition>
  void sleep(std::unique_lock<std::mutex>& lock, Waiter& waiter, std::chrono::milliseconds timeout,
             Condition done);
  // True once per thread and age.
  static bool take(Event& event, std::thread::id thread);

  std::mutex mutex_;
  std::map<std::uint32_t, Event> events_;
};

}  // namespace apusched::softapu
