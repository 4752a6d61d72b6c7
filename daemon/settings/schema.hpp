// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "core/config.hpp"

/// The names and ranges of all settings, once: reading and writing both walk these functions.
/// A Visitor has integer, milliseconds, boolean, name, nice, and the optional_* forms for levers
/// that may be left alone.
namespace apusched::settings {

using std::chrono::milliseconds;

/// What a profile may ask for. `manual` and `perf_determinism` mean that a person chose clocks by
/// hand; they are left alone where found and never written.
inline constexpr std::array kProfileLevels{core::PerformanceLevel::automatic,
                                           core::PerformanceLevel::low,
                                           core::PerformanceLevel::high,
                                           core::PerformanceLevel::profile_standard,
                                           core::PerformanceLevel::profile_min_sclk,
                                           core::PerformanceLevel::profile_min_mclk,
                                           core::PerformanceLevel::profile_peak};

inline constexpr std::array kQueuePriorities{core::QueuePriority::low, core::QueuePriority::normal,
                                             core::QueuePriority::high};

inline constexpr std::array kPolicies{core::SchedulingPolicy::normal, core::SchedulingPolicy::batch,
                                      core::SchedulingPolicy::idle};

inline constexpr std::array kIoClasses{core::IoClass::idle, core::IoClass::best_effort};

inline constexpr std::array kRaiseSlices{core::RaiseSlices::never, core::RaiseSlices::exclusive,
                                         core::RaiseSlices::always};

inline constexpr std::array kEnergySavings{
    core::EnergySaving::off, core::EnergySaving::balance_power, core::EnergySaving::power};

inline constexpr std::array kWorkClasses{core::WorkClass::background, core::WorkClass::batch,
                                         core::WorkClass::interactive, core::WorkClass::critical};

template <typename Visitor>
void describe(Visitor& visitor, core::Limits& limits) {
  visitor.integer("max_processes", limits.max_processes, 1, 16384);
  visitor.integer("max_members", limits.max_members, 1, 65536);
  visitor.integer("max_threads_per_process", limits.max_threads_per_process, 1, 65536);
  visitor.integer("max_threads_per_scan", limits.max_threads_per_scan, 1, 1048576);
  visitor.nice("nice_floor", limits.nice_floor);
  visitor.duration("scan_interval_ms", limits.scan_interval, milliseconds{50}, milliseconds{60000});
}

template <typename Visitor>
void describe(Visitor& visitor, core::ProbeSettings& probe) {
  visitor.boolean("enabled", probe.enabled);
  visitor.boolean("kernel_dispatch", probe.kernel_dispatch);
  visitor.integer("rate_hz", probe.rate_hz, 1, 200);
  visitor.integer("window_samples", probe.window_samples, 20, 100000);
  visitor.duration("sample_deadline_ms", probe.sample_deadline, milliseconds{1},
                   milliseconds{10000});
  visitor.duration("idle_burst_interval_ms", probe.idle_burst_interval, milliseconds{100},
                   milliseconds{3600000});
  visitor.duration("idle_burst_interval_max_ms", probe.idle_burst_interval_max, milliseconds{100},
                   milliseconds{3600000});
  visitor.integer("burst_samples", probe.burst_samples, 1, 100);
}

template <typename Visitor>
void describe(Visitor& visitor, core::GpuSettings& gpu) {
  visitor.boolean("enabled", gpu.enabled);
  visitor.account("helper_user", gpu.helper_user);
  visitor.duration("write_deadline_ms", gpu.write_deadline, milliseconds{100}, milliseconds{60000});
  visitor.duration("helper_deadline_ms", gpu.helper_deadline, milliseconds{500},
                   milliseconds{60000});
  visitor.duration("telemetry_interval_ms", gpu.telemetry_interval, milliseconds{100},
                   milliseconds{60000});
}

template <typename Visitor>
void describe(Visitor& visitor, core::AgentSection& agent) {
  visitor.boolean("enabled", agent.enabled);
  visitor.integer("max_agents", agent.max_agents, 1, 4096);
  visitor.integer("sample_hz", agent.sample_hz, 0, 1000);
}

template <typename Visitor>
void describe(Visitor& visitor, core::ControlSection& control) {
  visitor.boolean("enabled", control.enabled);
  visitor.duration("tick_ms", control.tick, milliseconds{20}, milliseconds{1000});
  visitor.duration("relax_after_ms", control.relax_after, milliseconds{100}, milliseconds{60000});
  visitor.duration("retry_after_ms", control.retry_after, milliseconds{1000},
                   milliseconds{3600000});
  visitor.nice("strong_nice", control.strong_nice);
  visitor.nice("strong_autogroup_nice", control.strong_autogroup_nice);
  visitor.integer("strong_cpu_weight", control.strong_cpu_weight, core::Weight::kMin,
                  core::Weight::kMax);
  visitor.word("raise_slices", control.raise_slices, kRaiseSlices);
  visitor.duration("level_check_after_ms", control.level_check_after, milliseconds{0},
                   milliseconds{3600000});
  visitor.integer("level_percent_per_watt", control.level_percent_per_watt, 0, 100);
  visitor.boolean("level_on_battery", control.level_on_battery);
  visitor.optional_integer("max_temperature_celsius", control.max_celsius);
  visitor.integer("freeze_background_percent", control.freeze_percent, 0, core::kMostFrozenPercent);
  visitor.duration("admission_wait_ms", control.admission_wait, milliseconds{0},
                   milliseconds{3600000});
  visitor.optional_integer("cpu_latency_us", control.cpu_latency);
  visitor.optional_integer("timer_slack_ns", control.timer_slack);
  visitor.word("background_energy_preference", control.background_energy, kEnergySavings);
}

template <typename Visitor>
void describe(Visitor& visitor, core::AccessSettings& access) {
  visitor.account("group", access.group);
}

template <typename Visitor>
void describe(Visitor& visitor, core::Profile& profile) {
  visitor.word("class", profile.work_class, kWorkClasses);
  visitor.optional_nice("nice", profile.nice);
  visitor.optional_nice("autogroup_nice", profile.autogroup_nice);
  visitor.optional_word("scheduling", profile.scheduling, kPolicies);
  visitor.optional_word("io_class", profile.io_class, kIoClasses);
  visitor.optional_weight("cpu_weight", profile.cpu_weight);
  visitor.optional_weight("io_weight", profile.io_weight);
  visitor.optional_word("performance_level", profile.performance_level, kProfileLevels);
  visitor.optional_word("queue_priority", profile.queue_priority, kQueuePriorities);
  visitor.optional_integer("cu_weight", profile.cu_weight);
  visitor.boolean("cu_exclusive", profile.cu_exclusive);
  visitor.optional_integer("cu_limit_percent", profile.cu_limit_percent);
  visitor.boolean("serial", profile.serial);
  visitor.optional_integer("queue_limit", profile.queue_limit);
  visitor.optional_integer("memory_limit_mib", profile.memory_limit);
  visitor.optional_integer("target_wait_us", profile.target_wait);
  visitor.optional_integer("target_dispatch_percent", profile.target_dispatch);
  visitor.boolean("include_children", profile.include_children);
}

/// Limits come first: whether a profile's nice is allowed depends on them.
template <typename Visitor>
void describe(Visitor& visitor, core::Config& config) {
  visitor.section("limits", config.limits);
  visitor.section("probe", config.probe);
  visitor.section("gpu", config.gpu);
  visitor.section("agent", config.agent);
  visitor.section("control", config.control);
  visitor.section("access", config.access);
  visitor.profiles("profiles", config.profiles);
}

}  // namespace apusched::settings
