// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace apusched::agent {

/// How far the agent's thread is with the daemon, for threads that make queues. Any thread.
class Attachment {
 public:
  /// The thread has been started and has not found out yet.
  void begin(std::chrono::milliseconds first_queue_wait) noexcept;
  /// A control page is in force.
  void attached() noexcept;
  /// No daemon, or it does not answer, or it refuses.
  void alone() noexcept;

  [[nodiscard]] bool is_attached() const noexcept {
    return is_attached_.load(std::memory_order_relaxed);
  }

  /// The first queue of the program waits until one of the above is known, or its time is over.
  /// All queues that are made meanwhile wait with it; later ones do not.
  void wait_for_answer() noexcept;

 private:
  void settle(bool attached) noexcept;

  std::mutex mutex_;
  std::condition_variable settled_;
  std::atomic<bool> is_attached_{false};
  std::atomic<bool> may_wait_{false};
  std::chrono::steady_clock::time_point wait_until_;  // guarded by mutex_; epoch: nobody waits yet
  std::chrono::milliseconds wait_{0};                 // guarded by mutex_
};

}  // namespace apusched::agent
