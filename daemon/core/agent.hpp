// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.hpp"
#include "core/cu_mask.hpp"
#include "core/types.hpp"

/// What the daemon and the agent in an inference process know of each other, as values.
namespace apusched::core {

/// One connection of an agent; never reused while the daemon runs.
using AgentId = Bounded<struct AgentTag, std::uint32_t, 1, 0xffffffffU>;

struct AgentGpu {
  PciAddress pci;
  std::uint32_t compute_units = 0;
  std::string isa;  ///< as the process says it; may be wrong, only shown
};

/// What an agent said when it came. The process is known from the socket, the rest is hearsay.
struct AgentFacts {
  ProcessKey process;
  bool can_mask = false;
  bool can_prioritise = false;
  bool can_serialise = false;
  bool can_limit_queues = false;
  bool can_limit_memory = false;
  bool can_gate = false;
  std::uint32_t queues_before = 0;  ///< made before it was loaded; out of its reach
  std::vector<AgentGpu> gpus;       ///< in the process's own order
};

/// What is asked of one agent. A default-constructed one releases everything.
struct AgentSettings {
  std::optional<QueuePriority> priority;
  bool serial = false;
  std::optional<QueueLimit> queue_limit;
  std::optional<MebiBytes> memory_limit;
  std::uint32_t sample_hz = 0;
  /// Submissions wait until this moment (steady clock); the past: they do not.
  std::chrono::nanoseconds gate_closed_until{0};
  std::map<PciAddress, CuMask> masks;

  bool operator==(const AgentSettings&) const = default;
};

enum class AgentOutcome { nothing, applied, failed, conflict, unsupported };

struct AgentSetting {
  AgentOutcome outcome = AgentOutcome::nothing;
  std::uint32_t detail = 0;  ///< hsa_status_t where it failed
  bool operator==(const AgentSetting&) const = default;
};

/// What an agent reports, after checks. Counts only grow while it is connected.
struct AgentReport {
  std::uint32_t settings = 0;  ///< which settings are in force: the sequence AgentHub::set gave
  std::uint32_t queues = 0;
  std::uint64_t submitted = 0;  ///< packets put into queues
  std::uint64_t taken = 0;      ///< packets fetched by the GPU
  std::uint64_t memory_bytes = 0;
  std::uint64_t refused_queues = 0;
  std::uint64_t refused_allocations = 0;
  std::uint64_t gate_waits = 0;
  std::uint64_t samples = 0;
  std::uint64_t busy_samples = 0;
  std::uint64_t backlog_sum = 0;
  std::uint64_t wait_count = 0;
  std::vector<std::chrono::nanoseconds> waits;  ///< the newest last; since the report before
  std::vector<AgentSetting> masks;              ///< in the order of AgentFacts::gpus
  AgentSetting priority;
  AgentSetting serial;

  bool operator==(const AgentReport&) const = default;
};

}  // namespace apusched::core
