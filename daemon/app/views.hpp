// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/control.hpp"
#include "core/latency_window.hpp"
#include "core/lever.hpp"
#include "core/types.hpp"
#include "ports/gpu.hpp"

namespace apusched::app {

/// What the agents in the processes of one registration report, summed up.
struct AgentView {
  std::uint32_t agents = 0;
  std::uint32_t queues = 0;
  std::uint64_t submitted = 0;  ///< packets, since each agent came
  std::uint64_t in_flight = 0;  ///< put into queues and not yet fetched by the GPU
  std::uint64_t memory_bytes = 0;
  std::uint64_t refused_queues = 0;
  std::uint64_t refused_allocations = 0;
  std::map<std::string, std::string> masks;  ///< PCI address to mask; a GPU without one is left out
  std::optional<std::chrono::nanoseconds> task_length;
  std::optional<core::LatencySummary> waits;
  bool operator==(const AgentView&) const = default;
};

/// How a target is kept.
struct ControlView {
  std::string state;     ///< core::ControlState
  std::string why;       ///< what was said when it was entered
  double target_us = 0;  ///< mean wait that must not be exceeded; 0: it is not known yet
  double wait_us = 0;    ///< as last observed
  std::vector<std::string> engaged;
  bool operator==(const ControlView&) const = default;
};

/// What the bus shows of one registration. A copy; no references into the registry.
struct ProcessView {
  core::ProcessKey key;
  std::string executable;
  std::string unit;
  std::uint32_t uid = 0;
  core::WorkClass work_class = core::WorkClass::interactive;
  std::string profile;
  std::string source;
  std::vector<core::LeverStatus> levers;
  std::uint32_t threads = 0;
  std::uint32_t members = 1;
  std::vector<std::string> gpus;
  std::optional<AgentView> agent;
  std::optional<ControlView> control;      ///< waits for a CPU; nothing without such a target
  std::optional<ControlView> gpu_control;  ///< for the GPU; nothing without a target or an agent
  bool operator==(const ProcessView&) const = default;
};

struct HistoryLine {
  std::chrono::steady_clock::time_point at;
  core::Pid pid;
  core::Latency of;
  std::string what;   ///< core::ControlEvent::What
  std::string lever;  ///< empty for a change of state
  std::string text;
  double before_us = 0;
  double after_us = 0;
};

/// Whether a program may be started now.
struct AdmissionView {
  bool admits = true;
  std::chrono::milliseconds wait{0};  ///< at most; then it may be started all the same
  std::string why;                    ///< where it may not
};

/// One thing there is to say of a process.
struct ExplainLine {
  std::string what;  ///< "class", "nice", …
  std::string value;
  std::string why;
};

struct GpuView {
  ports::GpuFacts facts;
  std::string level;        ///< empty while unknown
  std::string level_owner;  ///< "apusched", "other" or empty
  std::optional<ports::GpuTelemetry> telemetry;
  std::chrono::milliseconds telemetry_age{0};
  std::uint32_t queue_count = 0;
  std::string helper;      ///< "absent", "starting", "ready" or "degraded: why"
  std::string probe_mode;  ///< "off", "burst" or "continuous"
  std::map<core::ProbeSource, core::LatencySummary> latency;
};

}  // namespace apusched::app
