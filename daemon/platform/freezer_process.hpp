// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "freezer/order.hpp"
#include "platform/unique_fd.hpp"
#include "ports/event_loop.hpp"
#include "ports/freezer.hpp"

namespace apusched::platform {

struct FreezerOptions {
  std::string program;  ///< absolute path of apusched-freezer
  std::string cgroup_root = "/sys/fs/cgroup";
  std::chrono::milliseconds answer_deadline{2000};  ///< after it the guard is killed
  std::uint32_t max_losses = 3;                     ///< of guards within a minute
};

/// ports::Freezer by a guard process (daemon/freezer): it stops and lets run, it lets everything
/// run when this object is gone or silent, and this object lets everything run when the guard is
/// gone. There is a guard only while something is asked for. Owner of the guard and of what is
/// asked of it. Event-loop thread. Letting run needs no guard.
class FreezerProcess final : public ports::Freezer {
 public:
  FreezerProcess(ports::EventLoop& loop, FreezerOptions options);
  ~FreezerProcess() override;
  FreezerProcess(const FreezerProcess&) = delete;
  FreezerProcess& operator=(const FreezerProcess&) = delete;

  core::Result<std::vector<core::UnitProcess>> processes(const std::string& unit) override;
  core::Result<core::FrozenShare> read(const std::string& unit) override;
  void set(const std::string& unit, core::FrozenShare share, DoneCallback done) override;
  std::string why_not() const override { return why_not_; }
  void on_foreign(ForeignCallback callback) override { foreign_ = std::move(callback); }
  /// Of the guard that exists now; for tests.
  [[nodiscard]] std::optional<int> guard_pid() const;

 private:
  struct Guard {
    int pid = 0;
    UniqueFd socket;
    std::unique_ptr<ports::Subscription> socket_watch;
  };
  struct Asked {
    std::uint64_t sequence = 0;
    std::string unit;
    core::FrozenShare share;
    DoneCallback done;  ///< empty for a renewal
    std::chrono::steady_clock::time_point at;
  };

  [[nodiscard]] core::Result<void> start_guard();
  [[nodiscard]] core::Result<void> send(const std::string& unit, core::FrozenShare share,
                                        DoneCallback done);
  void on_socket();
  void take_answer(const freezer::Answer& answer);
  void guard_lost();
  void let_run(const std::string& unit, const DoneCallback& done);
  void arm();
  void renew();

  ports::EventLoop& loop_;
  FreezerOptions options_;
  std::string root_;  ///< of the cgroup v2 tree
  ForeignCallback foreign_;
  std::map<std::string, core::FrozenShare> wanted_;
  std::deque<Asked> asked_;  ///< in the order in which the guard answers
  std::optional<Guard> guard_;
  /// Guards that have to be reaped yet, by PID.
  std::map<int, std::unique_ptr<ports::Subscription>> exits_;
  std::deque<std::chrono::steady_clock::time_point> losses_;
  std::string why_not_;
  std::uint64_t sequence_ = 0;
  std::unique_ptr<ports::Subscription> timer_;
};

}  // namespace apusched::platform
