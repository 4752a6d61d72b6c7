// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "core/result.hpp"
#include "ports/event_loop.hpp"

struct sd_event;

namespace apusched::platform {

/// EventLoop over sd-event. Owner of the loop object; one per process, used from one thread.
class SdEventLoop final : public ports::EventLoop {
 public:
  [[nodiscard]] static core::Result<std::unique_ptr<SdEventLoop>> create();
  ~SdEventLoop() override;

  std::unique_ptr<ports::Subscription> watch_readable(int fd, Callback callback) override;
  std::unique_ptr<ports::Subscription> after(std::chrono::microseconds delay,
                                             Callback callback) override;
  void defer(Callback callback) override;
  std::unique_ptr<ports::Subscription> watch_child(
      int pid, std::function<void(int status)> callback) override;
  std::chrono::steady_clock::time_point now() const override;

  /// Blocks SIGTERM and SIGINT for the process and calls back when one arrives.
  [[nodiscard]] core::Result<void> on_stop_signal(Callback callback);
  /// Feeds systemd's watchdog where the unit asks for it; no timer otherwise.
  void enable_watchdog();
  /// Runs until `quit`; returns the exit code given there.
  [[nodiscard]] core::Result<int> run();
  void quit(int exit_code);
  /// For libraries that attach themselves to sd-event. Borrowed.
  [[nodiscard]] sd_event* native() const { return event_; }

 private:
  explicit SdEventLoop(sd_event* event) : event_(event) {}
  sd_event* event_;
  Callback stop_callback_;
};

}  // namespace apusched::platform
