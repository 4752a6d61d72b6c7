// SPDX-License-Identifier: MIT
#pragma once

#include <sys/eventfd.h>

#include <cstdint>

#include "agent/descriptor.hpp"

namespace apusched::agent {

/// Wakes the agent's thread: an eventfd for its poll(). send() from any thread.
///
/// Once open it stays so: a thread of the program that is about to write to it must not meet
/// another file under the same number.
class Poke {
 public:
  [[nodiscard]] bool open() noexcept {
    sent_.store(false, std::memory_order_relaxed);
    if (!event_.is_open()) event_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return event_.is_open();
  }
  /// In a child of fork(), where there are no other threads.
  void leave_to_parent() noexcept { event_.reset(); }
  [[nodiscard]] int descriptor() const noexcept { return event_.get(); }

  /// Several before the thread has looked are one system call.
  void send() noexcept {
    if (sent_.exchange(true, std::memory_order_acq_rel)) return;
    constexpr std::uint64_t kOne = 1;
    [[maybe_unused]] const auto written = write(event_.get(), &kOne, sizeof kOne);
  }
  /// By the woken thread, before it looks.
  void clear() noexcept {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = read(event_.get(), &count, sizeof count);
    sent_.store(false, std::memory_order_release);
  }

 private:
  Descriptor event_;
  std::atomic<bool> sent_{false};
};

}  // namespace apusched::agent
