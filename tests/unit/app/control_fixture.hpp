// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <string>

#include "service_fixture.hpp"

namespace apusched::app {

using What = core::ControlEvent::What;

/// A service with meters; the test moves the threads' times and the machine's on.
class ControlLoopTest : public ServiceTest {
 protected:
  void SetUp() override { meters_port_ = &meters_; }

  core::RegistrationId engine(int pid, const std::string& profile = "llm-interactive") {
    if (!world_.processes.contains(pid)) world_.add(pid);
    meters_.add(pid, pid);
    meters_.work(pid, 10, 0us);
    return added(pid, profile);
  }
  /// Lets ticks pass in which the thread waits so long for each of its slices.
  void run(std::chrono::milliseconds time, std::chrono::nanoseconds wait, double others,
           int tid = 50) {
    for (auto left = time; left > 0ms; left -= config_.control.tick) {
      if (wait >= 0ns) meters_.work(tid, 10, wait);
      meters_.pass(config_.control.tick, others);
      loop_.advance(config_.control.tick);
      loop_.settle();
    }
  }
  /// A process of the same session, that works while the test lets it.
  void rival(int pid) {
    world_.add(pid);
    meters_.add(pid, pid);
  }
  void contend(std::chrono::milliseconds time, std::chrono::nanoseconds wait) {
    for (auto left = time; left > 0ms; left -= config_.control.tick) {
      meters_.work(60, 1, 0us, 90ms);
      run(config_.control.tick, wait, 0.45);
    }
  }
  bool told(What what) {
    return std::ranges::any_of(report_.events,
                               [&](const core::ControlEvent& event) { return event.what == what; });
  }
  std::string state(core::RegistrationId id) {
    const auto view = service_->view(id);
    return view && view->control ? view->control->state : "none";
  }
};

}  // namespace apusched::app
