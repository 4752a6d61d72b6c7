// SPDX-License-Identifier: MIT
#include "platform/gpu_helper_process.hpp"

#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "platform/errno_error.hpp"

namespace apusched::platform {

using namespace std::chrono_literals;
using ports::HelperState;
using ports::ProbeMode;

namespace {

/// Records looked at in one call; the loop calls again, after others had their turn.
constexpr int kRecordsPerCall = 64;
constexpr std::size_t kMaxNoteBytes = 16 * sizeof(SpawnNote);

std::string join(const std::vector<std::string>& parts) {
  std::string out;
  for (const auto& part : parts) out += (out.empty() ? "" : "; ") + part;
  return out;
}

std::string in_seconds(std::chrono::milliseconds time) {
  const auto tenths = time.count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace

HelperProcess::HelperProcess(ports::EventLoop& loop, HelperProcessOptions options)
    : loop_(loop), options_(std::move(options)), backoff_(options_.backoff) {}

HelperProcess::~HelperProcess() {
  if (child_) kill_child();
}

void HelperProcess::set_mode(ProbeMode mode, const core::ProbeSettings& settings) {
  const auto wanted = to_command(mode, settings);
  if (wanted == mode_) return;
  mode_ = wanted;
  if (usable()) send(mode_);
  settle();
}

void HelperProcess::request_telemetry() {
  if (telemetry_wanted_) return;
  telemetry_wanted_ = true;
  if (usable()) send(gpu_helper::TelemetryRequest{});
  settle();
}

std::optional<int> HelperProcess::pid() const {
  return child_ ? std::optional(child_->pid) : std::nullopt;
}

bool HelperProcess::needed() const {
  return mode_.mode != ProbeMode::off || telemetry_wanted_;
}

bool HelperProcess::usable() const {
  return child_ && child_->hello && !child_->exited && !child_->quitting &&
         child_->kill_reason.empty();
}

/// Brings processes and timers in line with what is needed now.
void HelperProcess::settle() {
  if (child_) {
    if (child_->quitting || !child_->kill_reason.empty()) return;
    if (needed()) {
      linger_.reset();
      arm_heartbeat();
    } else if (child_->hello) {
      heartbeat_.reset();
      if (!linger_)
        linger_ = loop_.after(options_.linger, [this] {
          linger_.reset();
          if (!usable() || needed()) return;
          send(gpu_helper::Quit{});
          child_->quitting = true;
          await_death();
        });
    }
    return;
  }
  if (!needed()) {
    restart_.reset();
    set_state(HelperState::absent, {});
  } else if (loop_.now() >= not_before_) {
    start();
  } else if (!restart_) {
    const auto left = std::chrono::ceil<std::chrono::microseconds>(not_before_ - loop_.now());
    restart_ = loop_.after(left, [this] {
      restart_.reset();
      settle();
    });
  }
}

void HelperProcess::start() {
  restart_.reset();
  backoff_.started(loop_.now());
  auto spawned = options_.start(options_.spawn);
  if (!spawned) return schedule_restart(core::to_sentence(spawned.error()));
  child_ = Child{};
  child_->pid = spawned->pid;
  child_->socket = std::move(spawned->socket);
  child_->notes = std::move(spawned->notes);
  child_->reasons = std::move(spawned->reasons);
  child_->heard = loop_.now();
  watch_exit();
  child_->socket_watch = loop_.watch_readable(child_->socket.get(), [this] { on_socket(); });
  child_->notes_watch = loop_.watch_readable(child_->notes.get(), [this] { on_notes(); });
  set_state(HelperState::starting, {});
  arm_heartbeat();
  if (!child_->exit_watch || !child_->socket_watch || !child_->notes_watch)
    fail("the daemon has no descriptor left to watch the GPU helper");
}

void HelperProcess::watch_exit() {
  if (child_->exit_watch) return;
  child_->exit_watch = loop_.watch_child(child_->pid, [this](int status) { on_exit(status); });
  // Without a watch nobody would reap it: try again later.
  if (!child_->exit_watch) await_death();
}

void HelperProcess::on_notes() {
  std::array<std::byte, 256> buffer{};
  const ssize_t size = ::read(child_->notes.get(), buffer.data(), buffer.size());
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (size > 0 && child_->note_bytes.size() < kMaxNoteBytes) {
    child_->note_bytes.insert(child_->note_bytes.end(), buffer.begin(), buffer.begin() + size);
    return;
  }
  for (auto& text : describe_spawn_notes(child_->note_bytes))
    child_->reasons.push_back(std::move(text));
  child_->note_bytes.clear();
  // In this order: a helper for another GPU that is just being forked holds a copy, so that closing
  // a descriptor that epoll still watches would leave it there, with a pointer to a source that is
  // gone.
  child_->notes_watch.reset();
  child_->notes.reset();
  publish();
}

void HelperProcess::on_socket() {
  std::array<std::byte, gpu_helper::kMaxRecordSize + 1> buffer{};
  for (int i = 0; i < kRecordsPerCall; ++i) {
    const ssize_t size = ::recv(child_->socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (size <= 0) {
      // Its exit code tells more; only a helper that lives on without its socket is killed.
      stop_listening();
      await_death();
      return;
    }
    if (!take_record(std::span(buffer).first(static_cast<std::size_t>(size)))) return;
  }
}

bool HelperProcess::take_record(std::span<const std::byte> bytes) {
  child_->heard = loop_.now();
  const auto event = gpu_helper::decode_event(bytes);
  if (!event) {
    fail("the GPU helper sent garbage: " + event.error().detail);
  } else if (event->sequence <= child_->last_sequence) {
    fail("the GPU helper sent garbage: its sequence numbers go backwards");
  } else if (std::holds_alternative<gpu_helper::Hello>(event->message) == child_->hello) {
    fail("the GPU helper sent garbage: no hello first, or two");
  } else if (!within_rate()) {
    fail("the GPU helper floods the daemon with records");
  } else {
    child_->last_sequence = event->sequence;
    take_event(event->message);
  }
  return child_ && child_->kill_reason.empty();
}

bool HelperProcess::within_rate() {
  if (child_->heard - child_->second_started >= 1s) {
    child_->second_started = child_->heard;
    child_->records_in_second = 0;
  }
  return ++child_->records_in_second <= options_.max_records_per_second;
}

void HelperProcess::take_event(const gpu_helper::Event& event) {
  const auto& gpu = options_.spawn.gpu;
  if (std::holds_alternative<gpu_helper::Hello>(event)) {
    child_->hello = true;
    if (mode_.mode != ProbeMode::off) send(mode_);
    if (telemetry_wanted_) send(gpu_helper::TelemetryRequest{});
    settle();
    publish();
  } else if (const auto* sample = std::get_if<gpu_helper::Sample>(&event)) {
    // Samples still on their way when the probe was switched off belong to nobody.
    if (events_ != nullptr && mode_.mode != ProbeMode::off) events_->on_sample(gpu, sample->sample);
  } else if (const auto* telemetry = std::get_if<gpu_helper::Telemetry>(&event)) {
    telemetry_wanted_ = false;
    settle();
    if (events_ != nullptr) events_->on_telemetry(gpu, telemetry->telemetry);
  } else if (const auto* status = std::get_if<gpu_helper::Status>(&event)) {
    child_->status = *status;
    publish();
  }
}

void HelperProcess::send(const gpu_helper::Command& command) {
  const auto record = gpu_helper::encode(++sequence_, command);
  const auto bytes = record.bytes();
  ssize_t sent = 0;
  do {
    sent = ::send(child_->socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  // A broken pipe needs no word: end of file and exit are on their way.
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    fail("the GPU helper does not take its commands");
}

void HelperProcess::arm_heartbeat() {
  if (!heartbeat_) heartbeat_ = loop_.after(options_.deadline / 2, [this] { beat(); });
}

void HelperProcess::beat() {
  heartbeat_.reset();
  if (!child_ || !child_->kill_reason.empty()) return;
  // While a packet is late the helper waits for it, one sample deadline at most.
  const auto patience = options_.deadline + mode_.deadline;
  if (loop_.now() - child_->heard > patience)
    return fail("the GPU helper does not answer for " + in_seconds(options_.deadline));
  if (usable()) send(gpu_helper::Ping{});
  if (child_ && child_->kill_reason.empty()) arm_heartbeat();
}

void HelperProcess::stop_listening() {
  child_->socket_watch.reset();
}

/// The whole group, since a test's wrapper may have the real helper as its child; and the leader
/// by itself, since it may not have become one yet.
void HelperProcess::kill_child() const {
  if (child_->exited) return;
  ::kill(-child_->pid, SIGKILL);
  ::kill(child_->pid, SIGKILL);
}

void HelperProcess::fail(const std::string& why) {
  if (!child_->kill_reason.empty()) return;
  child_->kill_reason = why;
  stop_listening();
  heartbeat_.reset();
  linger_.reset();
  kill_child();
  set_state(HelperState::degraded, why);
  patience_.reset();
  await_death();
}

void HelperProcess::await_death() {
  if (patience_) return;
  patience_ = loop_.after(options_.kill_patience, [this] {
    patience_.reset();
    if (!child_) return;
    if (child_->kill_reason.empty()) return fail("the GPU helper was to end but lives on");
    watch_exit();
    set_state(HelperState::degraded, child_->kill_reason + "; the old helper (pid " +
                                         std::to_string(child_->pid) +
                                         ") does not die, so no new one is started");
  });
}

void HelperProcess::on_exit(int status) {
  child_->exited = true;
  // Records sent before its death still count; its last status says why it ended.
  if (child_->socket_watch) on_socket();
  const bool asked_to = child_->quitting && child_->kill_reason.empty();
  auto why = child_->kill_reason.empty() ? describe_exit(status) : child_->kill_reason;
  if (child_->kill_reason.empty() && child_->status &&
      (child_->status->code == gpu_helper::StatusCode::stuck ||
       child_->status->code == gpu_helper::StatusCode::unavailable))
    why += ": " + child_->status->text;
  if (child_->notes) on_notes();
  if (child_->notes) on_notes();
  if (!child_->hello && !child_->reasons.empty()) why += "; " + join(child_->reasons);
  heartbeat_.reset();
  linger_.reset();
  patience_.reset();
  child_.reset();
  if (asked_to)
    settle();
  else
    schedule_restart(why);
}

void HelperProcess::schedule_restart(const std::string& why) {
  const auto delay = backoff_.failed(loop_.now());
  not_before_ = loop_.now() + delay;
  // A reading that killed the helper is not asked for again by itself.
  telemetry_wanted_ = false;
  if (!needed()) return set_state(HelperState::degraded, why);
  set_state(HelperState::degraded, why + "; next start in " + in_seconds(delay));
  settle();
}

void HelperProcess::publish() {
  if (!child_ || !child_->hello || !child_->kill_reason.empty()) return;
  auto reasons = child_->reasons;
  if (child_->status && child_->status->code != gpu_helper::StatusCode::ok)
    reasons.push_back(child_->status->text);
  set_state(reasons.empty() ? HelperState::ready : HelperState::degraded, join(reasons));
}

void HelperProcess::set_state(HelperState state, std::string reason) {
  if (state == state_ && reason == reason_) return;
  state_ = state;
  reason_ = std::move(reason);
  if (events_ != nullptr) events_->on_state(options_.spawn.gpu, state_, reason_);
}

gpu_helper::SetMode to_command(ProbeMode mode, const core::ProbeSettings& settings) {
  const auto within = [](std::chrono::nanoseconds value, std::chrono::nanoseconds most) {
    return std::clamp<std::chrono::nanoseconds>(value, 1ms, most);
  };
  gpu_helper::SetMode out;
  out.mode = settings.enabled ? mode : ProbeMode::off;
  out.queue = true;
  out.kernel = settings.kernel_dispatch;
  out.period = within(std::chrono::nanoseconds(1s) / std::max(settings.rate_hz, 1U), 10s);
  out.deadline = within(settings.sample_deadline, 10s);
  out.burst_interval = within(settings.idle_burst_interval, 1h);
  out.burst_interval_max = within(settings.idle_burst_interval_max, 1h);
  out.burst_samples = std::clamp(settings.burst_samples, 1U, 1000U);
  return out;
}

std::string describe_exit(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    const char* name = sigdescr_np(number);
    return "the GPU helper was ended by signal " + std::to_string(number) + " (" +
           (name != nullptr ? name : "unknown") + ")";
  }
  using gpu_helper::ExitCode;
  const int code = WEXITSTATUS(wait_status);
  const auto with = [code](const char* meaning) {
    return "the GPU helper ended with code " + std::to_string(code) + " (" + meaning + ")";
  };
  switch (static_cast<ExitCode>(code)) {
    case ExitCode::ok:
      return "the GPU helper ended without being asked to";
    case ExitCode::usage:
      return with("bad arguments");
    case ExitCode::queue_stuck:
      return with("its queue hangs");
    case ExitCode::gpu_reset:
      return with("the GPU was reset");
    case ExitCode::bad_command:
      return with("it did not understand a command");
    case ExitCode::unavailable:
      return with("the probe could not be opened");
    case ExitCode::internal:
      return with("internal error");
  }
  return with(code == 126 ? "it could not be started" : "unknown");
}

}  // namespace apusched::platform
