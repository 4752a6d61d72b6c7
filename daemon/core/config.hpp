// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/energy.hpp"
#include "core/types.hpp"

namespace apusched::core {

/// A named set of lever settings bound to a class. A missing lever is left alone.
struct Profile {
  std::string name;
  WorkClass work_class = WorkClass::interactive;
  std::optional<Nice> nice;                    ///< every thread of the process
  std::optional<Nice> autogroup_nice;          ///< the session's autogroup, where autogroups act
  std::optional<SchedulingPolicy> scheduling;  ///< every thread; never `other`
  std::optional<IoClass> io_class;             ///< every thread; idle or best_effort
  std::optional<Weight> cpu_weight;            ///< the process's own systemd unit
  std::optional<Weight> io_weight;             ///< the same unit
  std::optional<PerformanceLevel> performance_level;  ///< the APU the process has queues on
  // What follows acts through the agent in the process.
  std::optional<QueuePriority> queue_priority;
  std::optional<CuWeight> cu_weight;        ///< takes part in dividing the CUs; see plan_cus
  bool cu_exclusive = false;                ///< CUs of its own, where a weight is given
  std::optional<Percent> cu_limit_percent;  ///< at most this share of a GPU's CUs
  bool serial = false;                      ///< kernels of one queue never overlap
  std::optional<QueueLimit> queue_limit;
  std::optional<MebiBytes> memory_limit;  ///< pool allocations of one process
  /// Mean wait for a CPU, of the busy thread that waits longest; no target: nothing is tried. Of
  /// waits with the mean m at most one in a hundred is longer than 100 m (Markov's inequality).
  std::optional<WaitTarget> target_wait;
  /// How long packets may wait for the GPU, measured by what they wait while nobody is in the way;
  /// no target: nothing is tried. Acts through the agents of those that are.
  std::optional<PercentOf> target_dispatch;
  bool include_children = false;  ///< descendants too (wrapper scripts, worker processes)

  bool operator==(const Profile&) const = default;
};

/// Bounds on what clients can make the daemon do.
struct Limits {
  std::uint32_t max_processes = 256;             ///< registrations, 1..16384
  std::uint32_t max_members = 1024;              ///< processes incl. children of all registrations
  std::uint32_t max_threads_per_process = 4096;  ///< threads looked at in one process
  std::uint32_t max_threads_per_scan = 16384;    ///< work in one scan over all registrations
  Nice nice_floor = Nice::of<-15>();             ///< no profile may ask for a lower nice
  std::chrono::milliseconds scan_interval{500};  ///< how often new threads and children are sought

  bool operator==(const Limits&) const = default;
};

/// How dispatch latency is sampled while registered GPU processes exist.
struct ProbeSettings {
  bool enabled = true;
  bool kernel_dispatch = true;  ///< sample no-op kernel dispatches besides barrier round trips
  std::uint32_t rate_hz = 20;   ///< 1..200, each source, while registered processes work
  std::uint32_t window_samples = 1200;             ///< samples kept per source, 20..100000
  std::chrono::milliseconds sample_deadline{250};  ///< a sample that takes longer counts as lost
  std::chrono::milliseconds idle_burst_interval{2000};       ///< first gap once processes idle
  std::chrono::milliseconds idle_burst_interval_max{30000};  ///< the gap doubles up to this
  std::uint32_t burst_samples = 5;                           ///< samples in one idle burst

  bool operator==(const ProbeSettings&) const = default;
};

struct GpuSettings {
  bool enabled = true;                       ///< false: never touch a GPU, never start a helper
  std::string helper_user = "apusched-gpu";  ///< unprivileged user the helper runs as
  std::chrono::milliseconds write_deadline{3000};   ///< for the level writer
  std::chrono::milliseconds helper_deadline{5000};  ///< silence after which the helper is killed
  std::chrono::milliseconds telemetry_interval{1000};

  bool operator==(const GpuSettings&) const = default;
};

/// The closed loop: what is held more strongly while a target is missed.
struct ControlSection {
  bool enabled = true;
  std::chrono::milliseconds tick{100};  ///< 20..1000
  std::chrono::milliseconds relax_after{500};
  std::chrono::milliseconds retry_after{30000};
  Nice strong_nice = Nice::of<-20>();  ///< of threads
  Nice strong_autogroup_nice = Nice::of<-20>();
  std::uint32_t strong_cpu_weight = 10000;
  RaiseSlices raise_slices = RaiseSlices::exclusive;
  /// A high GPU level is let go for a while after so long, to see whether it pays; 0: it stays.
  std::chrono::milliseconds level_check_after{30000};
  std::uint32_t level_percent_per_watt = 1;  ///< how much faster each watt has to make dispatches
  bool level_on_battery = false;             ///< held also while the machine is to save power
  std::optional<Celsius> max_celsius;        ///< a hotter GPU is not held at a high level
  /// Share of the time in which units that are wholly background are stopped, as the last thing
  /// that is tried, 0..90; 0: never.
  std::uint32_t freeze_percent = 0;
  /// How long `apuschedctl run` keeps back background work while a target is out of reach; 0:
  /// never.
  std::chrono::milliseconds admission_wait{30000};
  /// Of all CPUs, while a dispatch target is missed. The default is what the built-in target calls
  /// good for a wait for a CPU: waking one up is to take no longer.
  std::optional<IdleLimit> cpu_latency = IdleLimit::of<20>();
  /// Of every thread, while a dispatch target is missed. The default is below what can be seen in a
  /// wait.
  std::optional<TimerSlackWish> timer_slack = TimerSlackWish::of<1000>();
  /// Of CPUs on which only background work may run, while a dispatch target is missed.
  EnergySaving background_energy = EnergySaving::off;
  bool operator==(const ControlSection&) const = default;
};

/// Agents in inference processes.
struct AgentSection {
  bool enabled = true;             ///< false: no socket
  std::uint32_t max_agents = 256;  ///< connected at once, 1..4096
  std::uint32_t sample_hz = 20;    ///< looks at a registered process's queues, 0..1000
  bool operator==(const AgentSection&) const = default;
};

struct AccessSettings {
  std::string group = "apusched";  ///< members may write, like root
  bool operator==(const AccessSettings&) const = default;
};

struct Config {
  std::map<std::string, Profile> profiles;
  Limits limits;
  ProbeSettings probe;
  GpuSettings gpu;
  AgentSection agent;
  ControlSection control;
  AccessSettings access;

  bool operator==(const Config&) const = default;
};

/// What runs without any file: the two profiles `llm-interactive` and `background`.
[[nodiscard]] Config default_config();

}  // namespace apusched::core
