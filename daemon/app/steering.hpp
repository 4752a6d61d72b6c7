// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "app/views.hpp"
#include "core/control.hpp"
#include "ports/control_log.hpp"
#include "ports/event_loop.hpp"
#include "ports/report.hpp"

namespace apusched::app {

/// Few observations are compared, or many that scatter: a gain below this one is looked at twice.
/// Contention costs more, and so does what reaches it.
inline constexpr double kSureGain = 0.5;

/// Now, as controllers count time.
[[nodiscard]] inline core::Moment moment(const ports::EventLoop& loop) {
  return std::chrono::duration_cast<core::Moment>(loop.now().time_since_epoch());
}

/// Where all controllers tell what they did. Owner of the history. Event-loop thread.
class ControlBook {
 public:
  /// `log` may be null. All borrowed.
  ControlBook(ports::ControlLog* log, ports::EventLoop& loop, ports::Report& report)
      : log_(log), loop_(loop), report_(report) {}
  void on_state(std::function<void(core::RegistrationId)> changed) {
    state_changed_ = std::move(changed);
  }
  /// The newest last.
  [[nodiscard]] std::vector<HistoryLine> history(std::size_t count) const;
  void tell(core::Pid pid, core::Latency what, const core::ControlEvent& event);

 private:
  friend class Steering;
  ports::ControlLog* log_;
  ports::EventLoop& loop_;
  ports::Report& report_;
  std::function<void(core::RegistrationId)> state_changed_;
  std::deque<HistoryLine> history_;
};

/// One controller at work for one registration. Owner of the controller and of what it asked for.
class Steering {
 public:
  /// `book` is borrowed. `what` is what it keeps: wait for a CPU, or dispatch latency.
  Steering(ControlBook& book, core::Latency what, core::RegistrationId id, core::Pid pid,
           const core::ControlSettings& settings);

  /// Decides and tells; true where other rungs have to be in force than before.
  [[nodiscard]] bool step(const core::ControlInput& input);
  [[nodiscard]] const std::vector<std::string>& engaged() const { return engaged_; }
  [[nodiscard]] core::ControlState state() const { return state_; }
  [[nodiscard]] bool is_at_rest() const { return controller_.is_at_rest(); }
  [[nodiscard]] core::Pid pid() const { return pid_; }
  [[nodiscard]] ControlView view() const;

 private:
  void tell(const core::ControlOutput& output);

  ControlBook* book_;
  core::Latency what_;
  core::RegistrationId id_;
  core::Pid pid_;
  core::Controller controller_;
  std::vector<std::string> engaged_;
  core::ControlState state_ = core::ControlState::observing;
  std::string why_;         ///< what was said when it entered its state
  double target_ = 0;       ///< as last in force
  double observation_ = 0;  ///< the last one
};

}  // namespace apusched::app
