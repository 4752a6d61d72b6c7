// SPDX-License-Identifier: MIT
#include "gpu_helper/helper.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

namespace apusched::gpu_helper {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

namespace {

/// A packet that is late by this many deadlines will not come: let the daemon start afresh.
constexpr int kStuckDeadlines = 8;

/// Readings have no more time than this: the probe waits meanwhile.
constexpr auto kTelemetryBudget = std::chrono::milliseconds(250);
/// Readings go on for so long without a probe. A runtime that failed to start once is not asked
/// again in the same process: ROCr 5.2 keeps half of what it made.
constexpr auto kLifeWithoutProbe = std::chrono::seconds(3);

timespec to_timespec(nanoseconds span) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(span);
  return {seconds.count(), static_cast<long>((span - seconds).count())};
}

}  // namespace

Helper::Helper(HelperOptions options)
    : options_(std::move(options)),
      telemetry_(options_.sysfs_root, options_.gpu),
      rsmi_(options_.gpu) {}

ExitCode Helper::run() {
  send(Hello{static_cast<std::uint32_t>(getpid()), options_.use_rsmi && RsmiLevel::built_in()});
  while (connected_) {
    wait_for_work();
    if (const auto end = receive()) return *end;
    if (const auto end = take_sample()) return *end;
    if (end_at_ && SteadyClock::now() >= *end_at_) return ExitCode::unavailable;
  }
  return ExitCode::ok;
}

void Helper::wait_for_work() const {
  pollfd socket{options_.fd, POLLIN, 0};
  auto next = schedule_.next();
  if (end_at_ && (!next || *end_at_ < *next)) next = end_at_;
  if (next) {
    const auto left = std::max(nanoseconds(0), nanoseconds(*next - SteadyClock::now()));
    const timespec timeout = to_timespec(left);
    ppoll(&socket, 1, &timeout, nullptr);
  } else {
    ppoll(&socket, 1, nullptr, nullptr);
  }
}

std::optional<ExitCode> Helper::receive() {
  std::array<std::byte, kMaxRecordSize + 1> buffer{};
  while (true) {
    const ssize_t size = recv(options_.fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    if (size <= 0) return ExitCode::ok;
    const auto command = decode_command(std::span(buffer).first(static_cast<std::size_t>(size)));
    if (!command) {
      report(StatusCode::stuck, core::to_sentence(command.error()));
      return ExitCode::bad_command;
    }
    if (const auto end = obey(command->message)) return end;
  }
}

std::optional<ExitCode> Helper::obey(const Command& command) {
  if (std::holds_alternative<Quit>(command)) return ExitCode::ok;
  if (std::holds_alternative<Ping>(command)) send(Pong{probe_ != nullptr});
  if (std::holds_alternative<TelemetryRequest>(command)) send_telemetry();
  if (const auto* mode = std::get_if<SetMode>(&command)) set_mode(*mode);
  return std::nullopt;
}

void Helper::set_mode(const SetMode& mode) {
  if (mode == mode_) return;
  mode_ = mode;
  if (mode.mode == ports::ProbeMode::off) {
    probe_.reset();
    end_at_.reset();
    schedule_.configure(mode, SteadyClock::now());
    report(StatusCode::ok, {});
    return;
  }
  if (!probe_ && !end_at_) open_probe();
  if (!probe_) return;
  SetMode possible = mode;
  possible.kernel = mode.kernel && probe_->has_kernel();
  if (mode.kernel && !possible.kernel) {
    // A request for kernel samples alone would else leave nothing to take.
    possible.queue = true;
    report(StatusCode::limited, probe_->kernel_problem());
  } else {
    report(StatusCode::ok, {});
  }
  schedule_.configure(possible, SteadyClock::now());
}

void Helper::open_probe() {
  auto opened = Probe::open(options_.gpu);
  if (opened) {
    probe_ = std::move(*opened);
    return;
  }
  report(StatusCode::unavailable, core::to_sentence(opened.error()));
  // A GPU that this runtime does not know stays unknown; anything else may pass.
  if (opened.error().code != core::ErrorCode::unsupported)
    end_at_ = SteadyClock::now() + kLifeWithoutProbe;
  schedule_.configure(SetMode{}, SteadyClock::now());
}

std::optional<ExitCode> Helper::take_sample() {
  if (!probe_) return std::nullopt;
  if (probe_->faulted()) {
    report(StatusCode::stuck, "the HSA runtime reported a GPU exception");
    return ExitCode::gpu_reset;
  }
  const auto now = SteadyClock::now();
  const auto due = schedule_.take(now);
  if (!due) return std::nullopt;
  if (const auto since = probe_->stuck_since()) {
    if (now - *since < mode_.deadline * kStuckDeadlines) return std::nullopt;
    report(StatusCode::stuck, "a probe packet does not complete: the GPU or its queue hangs");
    return ExitCode::queue_stuck;
  }
  const auto outcome = probe_->sample(due->source, mode_.deadline);
  if (!outcome) return std::nullopt;
  send(Sample{{due->source, outcome->lost, outcome->latency, outcome->device}, due->missed});
  return std::nullopt;
}

void Helper::send_telemetry() {
  Telemetry event{telemetry_.read(kTelemetryBudget)};
  // rocm-smi-lib reads more files, without a limit.
  if (options_.use_rsmi && telemetry_.complete()) event.telemetry.level_rsmi = rsmi_.read();
  send(event);
  if (slow_files_ == !telemetry_.complete()) return;
  slow_files_ = !slow_files_;
  send_status();
}

void Helper::send(const Event& event) {
  const auto record = encode(++sequence_, event);
  ssize_t sent = 0;
  do {
    sent = ::send(options_.fd, record.bytes().data(), record.bytes().size(),
                  MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  // A daemon that does not read (EAGAIN) loses samples; the sequence number shows the gap.
  if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) connected_ = false;
}

void Helper::report(StatusCode code, std::string text) {
  status_ = {code, std::move(text)};
  send_status();
}

void Helper::send_status() {
  Status status = status_;
  if (slow_files_) {
    if (status.code == StatusCode::ok) status.code = StatusCode::limited;
    status.text = "sysfs is slow, readings are incomplete" +
                  (status.text.empty() ? status.text : "; " + status.text);
  }
  send(status);
}

}  // namespace apusched::gpu_helper
