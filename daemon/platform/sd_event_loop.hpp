// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <vector>

#include "core/result.hpp"
#include "ports/event_loop.hpp"

struct sd_event;
struct sd_event_source;

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
  void soon(Callback callback) override;
  /// Does now what `soon` put off. The loop calls it before its own callbacks; who attaches
  /// sources of their own to `native` calls it before theirs.
  void catch_up();
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
  std::vector<Callback> put_off_;
  sd_event_source* put_off_source_ = nullptr;  ///< set from the first `soon` on
  Callback stop_callback_;
};

}  // namespace apusched::platform
