// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "core/bounded.hpp"

namespace apusched::core {

using Pid = Bounded<struct PidTag, std::int32_t, 1, std::numeric_limits<std::int32_t>::max()>;
using Tid = Bounded<struct TidTag, std::int32_t, 1, std::numeric_limits<std::int32_t>::max()>;
using Nice = Bounded<struct NiceTag, std::int32_t, -20, 19>;

/// Start of a process or thread in clock ticks since boot (field 22 of /proc/PID/stat). A PID
/// alone is never trusted later: the kernel hands it out again.
struct StartTime {
  std::uint64_t ticks = 0;
  auto operator<=>(const StartTime&) const = default;
};
struct ProcessKey {
  Pid pid;
  StartTime start;
  auto operator<=>(const ProcessKey&) const = default;
};
struct ThreadKey {
  Tid tid;
  StartTime start;
  auto operator<=>(const ThreadKey&) const = default;
};

/// A cgroup weight as systemd takes it: 1..10000, or unset (systemd's "[not set]", the kernel
/// then uses 100).
class Weight {
 public:
  static constexpr std::uint32_t kMin = 1;
  static constexpr std::uint32_t kMax = 10000;
  static constexpr std::uint32_t kKernelDefault = 100;

  constexpr Weight() = default;  ///< unset
  [[nodiscard]] static constexpr std::optional<Weight> make(std::int64_t value) {
    if (value < kMin || value > kMax) return std::nullopt;
    return Weight(static_cast<std::uint32_t>(value));
  }
  [[nodiscard]] constexpr bool is_set() const { return value_ != 0; }
  /// The weight in force: an unset weight acts as the kernel's default.
  [[nodiscard]] constexpr std::uint32_t effective() const {
    return is_set() ? value_ : kKernelDefault;
  }
  constexpr bool operator==(const Weight&) const = default;

 private:
  explicit constexpr Weight(std::uint32_t value) : value_(value) {}
  std::uint32_t value_ = 0;
};

/// amdgpu's power_dpm_force_performance_level (linux drivers/gpu/drm/amd/pm/amdgpu_pm.c).
enum class PerformanceLevel {
  automatic,
  low,
  high,
  manual,
  profile_standard,
  profile_min_sclk,
  profile_min_mclk,
  profile_peak,
  perf_determinism,
};
/// The kernel's spelling, e.g. "auto".
[[nodiscard]] std::string_view to_string(PerformanceLevel level);
/// Exactly one known level, one trailing newline allowed; anything else is no value.
[[nodiscard]] std::optional<PerformanceLevel> parse_performance_level(std::string_view text);
/// Above what the driver chooses by itself: costs power.
[[nodiscard]] bool raises_clocks(PerformanceLevel level);
/// `manual`, `profile_*` and `perf_determinism` are only ever set by a person or a tool of theirs.
[[nodiscard]] bool is_someones_choice(PerformanceLevel level);

/// "dddd:bb:dd.f", lower case. GPUs are named by it, never by card index (that one is unstable).
class PciAddress {
 public:
  [[nodiscard]] static std::optional<PciAddress> parse(std::string_view text);
  [[nodiscard]] const std::string& text() const { return text_; }
  auto operator<=>(const PciAddress&) const = default;

 private:
  explicit PciAddress(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

enum class WorkClass { background, batch, interactive, critical };
[[nodiscard]] std::string_view to_string(WorkClass work_class);
[[nodiscard]] std::optional<WorkClass> parse_work_class(std::string_view text);

/// Where a latency sample comes from; the three are never mixed (a barrier does not see CU
/// contention, a kernel dispatch does).
enum class ProbeSource { queue, kernel };
[[nodiscard]] std::string_view to_string(ProbeSource source);
[[nodiscard]] std::optional<ProbeSource> parse_probe_source(std::string_view text);

/// hsa_amd_queue_priority_t.
enum class QueuePriority { low, normal, high };
[[nodiscard]] std::string_view to_string(QueuePriority priority);
[[nodiscard]] std::optional<QueuePriority> parse_queue_priority(std::string_view text);

/// sched(7). `other` is what an application or a person chose on purpose (real time, deadline,
/// sched_ext); it is never changed.
enum class SchedulingPolicy { idle, batch, normal, other };
[[nodiscard]] std::string_view to_string(SchedulingPolicy policy);
[[nodiscard]] std::optional<SchedulingPolicy> parse_scheduling_policy(std::string_view text);

enum class IoClass { none, real_time, best_effort, idle };  ///< numbered as in ioprio_set(2)
[[nodiscard]] std::string_view to_string(IoClass io_class);
/// Class and data (level and hints) of ioprio_set(2).
struct IoPriority {
  IoClass io_class = IoClass::none;  ///< none: derived from nice
  std::uint16_t data = 0;            ///< 0..8191; always 0 for none
  auto operator<=>(const IoPriority&) const = default;
};
/// "best-effort/7"
[[nodiscard]] std::string to_string(const IoPriority& priority);
[[nodiscard]] std::optional<IoPriority> parse_io_priority(std::string_view text);

/// Which slices above a critical unit may be given a greater weight.
enum class RaiseSlices { never, exclusive, always };
[[nodiscard]] std::string_view to_string(RaiseSlices raise);

/// HSA queues of one process.
using QueueLimit = Bounded<struct QueueLimitTag, std::uint32_t, 1, 1024>;
/// At most 4 TiB.
using MebiBytes = Bounded<struct MebiBytesTag, std::uint32_t, 1, 4194304>;
/// How CUs are divided between processes: the ratio of their weights.
using CuWeight = Bounded<struct CuWeightTag, std::uint32_t, 1, 1000>;
/// Microseconds.
using WaitTarget = Bounded<struct WaitTargetTag, std::uint32_t, 10, 1000000>;
using Percent = Bounded<struct PercentTag, std::uint32_t, 1, 100>;
/// Of a yardstick, which is 100: how much more than it is still good.
using PercentOf = Bounded<struct PercentOfTag, std::uint32_t, 101, 1000>;

/// Share of the time in which a unit is stopped by the freezer; 0: it runs. 100 is what somebody
/// else does who freezes it; it is never asked for.
inline constexpr std::uint32_t kMostFrozenPercent = 90;  ///< that is: it goes on in every period
using FrozenShare = Bounded<struct FrozenShareTag, std::uint32_t, 0, 100>;

/// Of a GPU.
using Celsius = Bounded<struct CelsiusTag, std::uint32_t, 40, 120>;

/// Microseconds that an idle CPU may take to wake up; 0: it polls.
using IdleLimit = Bounded<struct IdleLimitTag, std::uint32_t, 0, 10000>;

/// How late the timers of a thread may fire, nanoseconds. 0 is that of a real-time thread, whose
/// timers are never late; written, it means the thread's default.
using TimerSlack =
    Bounded<struct TimerSlackTag, std::int64_t, 0, std::numeric_limits<std::int64_t>::max()>;
/// One that may be asked for: the kernel's default is 50000.
using TimerSlackWish = Bounded<struct TimerSlackWishTag, std::uint32_t, 1, 1000000>;

/// Identifies one registration for its whole life; never reused while the daemon runs.
using RegistrationId = Bounded<struct RegistrationTag, std::uint32_t, 1, 0xffffffffU>;

}  // namespace apusched::core
