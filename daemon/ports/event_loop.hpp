// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

namespace apusched::ports {

/// Destroying it ends the watch or the timer; safe inside its own callback.
class Subscription {
 public:
  virtual ~Subscription() = default;
};

/// The one event loop. All callbacks run on its thread.
class EventLoop {
 public:
  virtual ~EventLoop() = default;
  using Callback = std::function<void()>;
  /// Called each time the descriptor is readable (level-triggered). The fd stays the caller's.
  [[nodiscard]] virtual std::unique_ptr<Subscription> watch_readable(int fd, Callback callback) = 0;
  /// Once, after `delay`.
  [[nodiscard]] virtual std::unique_ptr<Subscription> after(std::chrono::microseconds delay,
                                                            Callback callback) = 0;
  /// Once, before the next I/O is looked at.
  virtual void defer(Callback callback) = 0;
  /// Like `defer`, but lets others have the CPU first. For what need not be done when a caller gets
  /// its answer: the caller would otherwise wait for it where it shares our CPU.
  virtual void soon(Callback callback) { defer(std::move(callback)); }
  /// Calls back with the exit of a child process (waitpid status) once; reaps it.
  [[nodiscard]] virtual std::unique_ptr<Subscription> watch_child(
      int pid, std::function<void(int status)> callback) = 0;
  /// Monotonic.
  [[nodiscard]] virtual std::chrono::steady_clock::time_point now() const = 0;
};

}  // namespace apusched::ports
