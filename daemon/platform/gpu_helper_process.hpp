// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu_helper/protocol.hpp"
#include "platform/gpu_backoff.hpp"
#include "platform/gpu_spawn.hpp"
#include "ports/event_loop.hpp"
#include "ports/gpu.hpp"

namespace apusched::platform {

struct HelperProcessOptions {
  HelperSpawn spawn;
  /// No hello, no answer to a ping and no telemetry for this long: killed and started anew.
  std::chrono::milliseconds deadline{5000};
  std::chrono::milliseconds linger{10'000};       ///< life without anything to do
  std::chrono::milliseconds kill_patience{2000};  ///< SIGKILL to "does not die"
  std::uint32_t max_records_per_second = 5000;    ///< more is a helper gone mad
  Backoff::Limits backoff{};
  /// Replaced by tests.
  std::function<core::Result<SpawnedHelper>(const HelperSpawn&)> start = spawn_helper;
};

/// Owner of one helper process and its socket. Event-loop thread. Nothing here blocks: the child
/// reports through pipe and socket. Destroying it kills the helper; its exit is then not waited
/// for. An Events callback must not destroy this object.
///
/// Life: absent → starting (process made, no hello yet) → ready or degraded → dying (killed or
/// told to quit, not yet reaped) → absent or waiting for the back-off. A new process is never
/// made while the old one exists: one in uninterruptible sleep ignores SIGKILL.
class HelperProcess final : public ports::GpuHelper {
 public:
  HelperProcess(ports::EventLoop& loop, HelperProcessOptions options);
  ~HelperProcess() override;
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;

  void set_events(Events* events) override { events_ = events; }
  void set_mode(ports::ProbeMode mode, const core::ProbeSettings& settings) override;
  void request_telemetry() override;
  [[nodiscard]] ports::HelperState state() const override { return state_; }
  [[nodiscard]] std::string reason() const override { return reason_; }
  /// Of the process that exists now; for tests and status.
  [[nodiscard]] std::optional<int> pid() const;

 private:
  /// One process from fork to its reaping.
  struct Child {
    int pid = 0;
    UniqueFd socket;
    UniqueFd notes;
    std::unique_ptr<ports::Subscription> socket_watch;
    std::unique_ptr<ports::Subscription> notes_watch;
    std::unique_ptr<ports::Subscription> exit_watch;
    std::vector<std::byte> note_bytes;
    std::vector<std::string> reasons;  ///< why this process runs with less than it should
    std::optional<gpu_helper::Status> status;
    bool hello = false;
    bool quitting = false;    ///< told to quit: its end is no failure
    bool exited = false;      ///< reaped: its pid is no longer ours to signal
    std::string kill_reason;  ///< set once killed
    std::uint64_t last_sequence = 0;
    std::chrono::steady_clock::time_point heard;
    std::chrono::steady_clock::time_point second_started;
    std::uint32_t records_in_second = 0;
  };

  [[nodiscard]] bool needed() const;
  void start();
  void on_notes();
  void on_socket();
  /// False once the child was given up because of it.
  [[nodiscard]] bool take_record(std::span<const std::byte> bytes);
  void take_event(const gpu_helper::Event& event);
  [[nodiscard]] bool within_rate();
  void on_exit(int status);
  void send(const gpu_helper::Command& command);
  void stop_listening();
  void watch_exit();
  void kill_child() const;
  void fail(const std::string& why);
  void schedule_restart(const std::string& why);
  void await_death();
  [[nodiscard]] bool usable() const;
  void arm_heartbeat();
  void beat();
  void settle();
  void set_state(ports::HelperState state, std::string reason);
  void publish();

  ports::EventLoop& loop_;
  HelperProcessOptions options_;
  Events* events_ = nullptr;
  Backoff backoff_;
  gpu_helper::SetMode mode_;
  bool telemetry_wanted_ = false;  ///< asked for and not yet answered
  std::optional<Child> child_;
  std::unique_ptr<ports::Subscription> heartbeat_;
  std::unique_ptr<ports::Subscription> linger_;
  std::unique_ptr<ports::Subscription> restart_;
  std::unique_ptr<ports::Subscription> patience_;
  std::chrono::steady_clock::time_point not_before_{};  ///< end of the back-off
  std::uint64_t sequence_ = 0;
  ports::HelperState state_ = ports::HelperState::absent;
  std::string reason_;
};

/// The probe part of the configuration as a command. Values out of the protocol's range are
/// moved into it.
[[nodiscard]] gpu_helper::SetMode to_command(ports::ProbeMode mode,
                                             const core::ProbeSettings& settings);

/// "was ended by signal 6 (Aborted)" or "ended: ..." with the meaning of its exit code.
[[nodiscard]] std::string describe_exit(int wait_status);

}  // namespace apusched::platform
