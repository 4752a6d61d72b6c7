// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/energy.hpp"
#include "core/result.hpp"
#include "core/types.hpp"

namespace apusched::core {

/// The first five, scheduling, io_class, timer_slack, freezer and energy_preference are values of
/// the system with an original in the ledger. The rest are settings of a process's own queues, kept
/// by the agent in it: they end with the agent's connection.
enum class LeverKind {
  nice,
  autogroup,
  cpu_weight,
  io_weight,
  performance_level,
  cu_mask,
  queue_priority,
  serial,
  queue_limit,
  memory_limit,
  scheduling,    ///< policy of every thread, in the ledger like nice
  io_class,      ///< I/O priority of every thread, likewise
  slice_weight,  ///< CPUWeight of the slices above the unit; in the ledger as cpu_weight of each
  freezer,       ///< a background unit stopped for a part of the time, in the ledger
  timer_slack,   ///< of every thread, in the ledger like nice
  cpu_latency,   ///< limit on idle states of all CPUs; in no ledger, it ends with the daemon
  energy_preference,  ///< of a cpufreq policy with background work only, in the ledger
};
[[nodiscard]] std::string_view to_string(LeverKind kind);
/// No setting of a profile, but held for a process while its dispatch target is missed.
[[nodiscard]] bool is_for_dispatch(LeverKind kind);
/// Of those that the ledger knows.
[[nodiscard]] std::optional<LeverKind> parse_lever_kind(std::string_view text);

using LeverValue = std::variant<Nice, Weight, PerformanceLevel, SchedulingPolicy, IoPriority,
                                TimerSlack, FrozenShare, EnergyPreference>;
/// Text form used in the ledger and on D-Bus; "unset" for a weight that is not set.
[[nodiscard]] std::string to_string(const LeverValue& value);
[[nodiscard]] std::optional<LeverValue> parse_lever_value(LeverKind kind, std::string_view text);
/// True where `a` favours its holder more than `b`: lower nice, higher weight, higher clocks, a
/// policy or I/O class that goes first. Of what is held against the rest of the system (a unit that
/// is stopped, CPUs of others that save energy): the more of it.
[[nodiscard]] bool favours_more(const LeverValue& a, const LeverValue& b);

enum class Outcome {
  pending,      ///< asked for, answer still to come (weights, GPU level)
  applied,      ///< written and read back
  gone,         ///< the target disappeared; nothing to do
  denied,       ///< the kernel or systemd refused
  unsupported,  ///< cannot act here; detail says why
  contended,    ///< somebody else changed it since; theirs until released
  failed,
  dry_run,  ///< would have been written
  standby,  ///< left as it was for now; detail says until when
};
[[nodiscard]] std::string_view to_string(Outcome outcome);
[[nodiscard]] Outcome outcome_of(const Error& error);

/// One lever of one registration, as `status` shows it.
struct LeverStatus {
  LeverKind kind = LeverKind::nice;
  Outcome outcome = Outcome::pending;
  std::string target;  ///< "12 threads", "/autogroup-88", "llama.service", "0000:04:00.0"
  std::string value;   ///< what was asked for
  std::string detail;  ///< against whom it acts, or why it cannot

  bool operator==(const LeverStatus&) const = default;
};

}  // namespace apusched::core
