// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>

#include "platform/unique_fd.hpp"
#include "ports/meters.hpp"

namespace apusched::platform {

/// "RAN WAITED SLICES", nanoseconds and a count.
[[nodiscard]] std::optional<ports::ThreadTimes> parse_schedstat(std::string_view text);
/// The first line of /proc/stat, in ticks of `ticks_per_second`; iowait counts as idle, and guest
/// time is part of user time already (linux fs/proc/stat.c).
[[nodiscard]] std::optional<ports::MachineTimes> parse_machine_stat(std::string_view text,
                                                                    long ticks_per_second);

/// The runnable threads of /proc/loadavg: "0.20 0.18 0.12 1/80 11206".
[[nodiscard]] std::optional<std::uint32_t> parse_runnable(std::string_view text);

/// CPU time of a process since its start, by its CPU clock. A zombie still has one.
[[nodiscard]] core::Result<std::chrono::nanoseconds> cpu_time_of(core::Pid pid);

/// ports::Meters over /proc and the kernel's CPU clocks. Event-loop thread.
class ProcfsMeters final : public ports::Meters {
 public:
  [[nodiscard]] core::Result<std::unique_ptr<ports::ThreadMeter>> open(core::Pid pid,
                                                                       core::Tid tid) override;
  [[nodiscard]] core::Result<std::vector<ThreadRan>> threads(core::Pid pid,
                                                             std::uint32_t limit) override;
  [[nodiscard]] core::Result<std::chrono::nanoseconds> process(core::Pid pid) override;
  [[nodiscard]] core::Result<ports::MachineTimes> machine() override;

 private:
  UniqueFd stat_;     ///< /proc/stat, kept open
  UniqueFd loadavg_;  ///< /proc/loadavg, likewise
};

}  // namespace apusched::platform
