// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/result.hpp"
#include "core/types.hpp"

namespace apusched::ports {

/// Totals of one thread since its start, by the scheduler's own account (/proc/TID/schedstat).
struct ThreadTimes {
  std::chrono::nanoseconds ran{0};
  std::chrono::nanoseconds waited{0};  ///< runnable, but another had the CPU; booked when it runs
  std::uint64_t slices = 0;            ///< times it got the CPU
};

/// One thread, kept open: a reading costs one system call. Reads on for the same thread even if
/// its TID is handed out again; answers `gone` once it has ended.
class ThreadMeter {
 public:
  virtual ~ThreadMeter() = default;
  [[nodiscard]] virtual core::Result<ThreadTimes> read() = 0;
};

struct MachineTimes {
  std::chrono::nanoseconds busy{0};  ///< all CPUs
  std::chrono::nanoseconds all{0};   ///< busy and idle
  /// Threads that run or want to at this moment, the reader included. Who is starved uses no CPU,
  /// but is among them.
  std::uint32_t runnable = 0;
};

class Meters {
 public:
  virtual ~Meters() = default;
  [[nodiscard]] virtual core::Result<std::unique_ptr<ThreadMeter>> open(core::Pid pid,
                                                                        core::Tid tid) = 0;
  struct ThreadRan {
    core::Tid tid;
    std::chrono::nanoseconds ran{0};
  };
  /// Every thread of a process, at most `limit`: to find those that matter.
  [[nodiscard]] virtual core::Result<std::vector<ThreadRan>> threads(core::Pid pid,
                                                                     std::uint32_t limit) = 0;
  /// CPU time of a whole process since its start.
  [[nodiscard]] virtual core::Result<std::chrono::nanoseconds> process(core::Pid pid) = 0;
  [[nodiscard]] virtual core::Result<MachineTimes> machine() = 0;
};

}  // namespace apusched::ports
