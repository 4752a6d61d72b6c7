// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <map>
#include <optional>

#include "app/registration.hpp"
#include "ports/event_loop.hpp"
#include "ports/meters.hpp"
#include "ports/processes.hpp"

namespace apusched::app {

/// Who works in the scheduling group of a registered process besides itself: only there does nice
/// count. To list a group can mean to read all of /proc: at most one list every half second,
/// whatever is registered. Owner of the lists. Event-loop thread.
class Neighbours {
 public:
  /// All borrowed; without `meters` nobody is seen to work.
  Neighbours(ports::ProcessSource& processes, ports::Meters* meters, ports::EventLoop& loop)
      : processes_(processes), meters_(meters), loop_(loop) {}

  /// Looks again. To be called while the process misses its target: the first call can tell
  /// nothing yet, it takes two to see who has worked meanwhile.
  void look(const Registration& registration);
  /// What the last look saw.
  [[nodiscard]] bool busy(core::RegistrationId id) const;
  void forget(core::RegistrationId id) { groups_.erase(id); }

 private:
  struct Group {
    std::optional<std::chrono::steady_clock::time_point> listed;
    std::chrono::steady_clock::time_point read{};
    std::map<core::Pid, std::optional<std::chrono::nanoseconds>> used;  ///< CPU time when last read
    bool busy = false;
  };
  void list(Group& group, const Registration& registration);

  ports::ProcessSource& processes_;
  ports::Meters* meters_;
  ports::EventLoop& loop_;
  std::optional<std::chrono::steady_clock::time_point> listed_;  ///< any group, when last
  std::map<core::RegistrationId, Group> groups_;
};

}  // namespace apusched::app
