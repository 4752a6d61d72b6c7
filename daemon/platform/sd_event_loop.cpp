// SPDX-License-Identifier: MIT
#include "platform/sd_event_loop.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "platform/errno_error.hpp"
#include "platform/unique_fd.hpp"

namespace apusched::platform {
namespace {

/// One sd-event source with its callback. The callback is kept alive while it runs, so that it
/// may destroy its own subscription.
class Source final : public ports::Subscription {
 public:
  Source(SdEventLoop& loop, std::function<void()> callback)
      : loop_(loop), callback_(std::make_shared<std::function<void()>>(std::move(callback))) {}
  ~Source() override { sd_event_source_disable_unref(source_); }
  sd_event_source** slot() { return &source_; }
  void fire() {
    const auto running = callback_;
    loop_.catch_up();
    // Catching up may have ended this very subscription: then `running` is the last to hold it.
    if (running.use_count() > 1) (*running)();
  }

 private:
  SdEventLoop& loop_;
  sd_event_source* source_ = nullptr;
  std::shared_ptr<std::function<void()>> callback_;
};

int on_io(sd_event_source*, int, std::uint32_t, void* data) {
  static_cast<Source*>(data)->fire();
  return 0;
}
int on_time(sd_event_source*, std::uint64_t, void* data) {
  static_cast<Source*>(data)->fire();
  return 0;
}

class ChildWatch final : public ports::Subscription {
 public:
  ChildWatch(UniqueFd fd, std::unique_ptr<ports::Subscription> watch)
      : fd_(std::move(fd)), watch_(std::move(watch)) {}

 private:
  UniqueFd fd_;
  std::unique_ptr<ports::Subscription> watch_;
};

}  // namespace

core::Result<std::unique_ptr<SdEventLoop>> SdEventLoop::create() {
  sd_event* event = nullptr;
  if (const int error = sd_event_new(&event); error < 0)
    return tl::unexpected(errno_error(-error, "create", "event loop"));
  return std::unique_ptr<SdEventLoop>(new SdEventLoop(event));
}

SdEventLoop::~SdEventLoop() {
  sd_event_source_disable_unref(put_off_source_);
  sd_event_unref(event_);
}

std::unique_ptr<ports::Subscription> SdEventLoop::watch_readable(int fd, Callback callback) {
  auto source = std::make_unique<Source>(*this, std::move(callback));
  if (sd_event_add_io(event_, source->slot(), fd, EPOLLIN, on_io, source.get()) < 0) return nullptr;
  return source;
}

std::unique_ptr<ports::Subscription> SdEventLoop::after(std::chrono::microseconds delay,
                                                        Callback callback) {
  auto source = std::make_unique<Source>(*this, std::move(callback));
  // Accuracy of a tenth of the delay lets the kernel merge wake-ups.
  const auto accuracy = std::max<std::int64_t>(delay.count() / 10, 1);
  if (sd_event_add_time_relative(event_, source->slot(), CLOCK_MONOTONIC,
                                 static_cast<std::uint64_t>(delay.count()),
                                 static_cast<std::uint64_t>(accuracy), on_time, source.get()) < 0)
    return nullptr;
  return source;
}

void SdEventLoop::defer(Callback callback) {
  auto* heap = new Callback(std::move(callback));
  const auto run_once = [](sd_event_source* source, void* data) -> int {
    const std::unique_ptr<Callback> owned(static_cast<Callback*>(data));
    (*owned)();
    sd_event_source_disable_unref(source);
    return 0;
  };
  sd_event_source* source = nullptr;
  if (sd_event_add_defer(event_, &source, run_once, heap) < 0) {
    delete heap;
    return;
  }
  sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IMPORTANT);
}

void SdEventLoop::soon(Callback callback) {
  put_off_.push_back(std::move(callback));
  if (put_off_.size() > 1) return;
  const auto on_turn = [](sd_event_source*, void* self) -> int {
    // Waking the receiver of an answer does not make it run where it shares our CPU. (A timer
    // instead would cost 14 us to arm in a virtual machine, before we sleep.)
    ::sched_yield();
    static_cast<SdEventLoop*>(self)->catch_up();
    return 0;
  };
  if (put_off_source_ == nullptr) {
    if (sd_event_add_defer(event_, &put_off_source_, on_turn, this) < 0) return catch_up();
    sd_event_source_set_priority(put_off_source_, SD_EVENT_PRIORITY_IMPORTANT);
  } else {
    sd_event_source_set_enabled(put_off_source_, SD_EVENT_ONESHOT);
  }
}

void SdEventLoop::catch_up() {
  if (put_off_.empty()) return;
  sd_event_source_set_enabled(put_off_source_, SD_EVENT_OFF);
  for (const auto& callback : std::exchange(put_off_, {})) callback();
}

std::unique_ptr<ports::Subscription> SdEventLoop::watch_child(
    int pid, std::function<void(int status)> callback) {
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!fd) return nullptr;
  auto watch = watch_readable(fd.get(), [pid, callback = std::move(callback)] {
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) == pid) callback(status);
  });
  if (!watch) return nullptr;
  return std::make_unique<ChildWatch>(std::move(fd), std::move(watch));
}

std::chrono::steady_clock::time_point SdEventLoop::now() const {
  return std::chrono::steady_clock::now();
}

core::Result<void> SdEventLoop::on_stop_signal(Callback callback) {
  stop_callback_ = std::move(callback);
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGINT);
  if (::sigprocmask(SIG_BLOCK, &stop, nullptr) != 0)
    return tl::unexpected(errno_error(errno, "block", "signals"));
  const auto handler = [](sd_event_source*, const signalfd_siginfo*, void* data) -> int {
    static_cast<SdEventLoop*>(data)->stop_callback_();
    return 0;
  };
  for (const int signal : {SIGTERM, SIGINT})
    if (const int error = sd_event_add_signal(event_, nullptr, signal, handler, this); error < 0)
      return tl::unexpected(errno_error(-error, "watch", "signals"));
  return {};
}

void SdEventLoop::enable_watchdog() {
  sd_event_set_watchdog(event_, 1);
}

core::Result<int> SdEventLoop::run() {
  const int code = sd_event_loop(event_);
  if (code < 0) return tl::unexpected(errno_error(-code, "run", "event loop"));
  return code;
}

void SdEventLoop::quit(int exit_code) {
  sd_event_exit(event_, exit_code);
}

}  // namespace apusched::platform
