// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// What the daemon says, as plain data: filled by the bus client, shown by the renderers.
namespace apusched::ctl {

struct DaemonView {
  std::string version;
  std::string state;  ///< "idle", "active" or "degraded"
  std::vector<std::string> degraded;
  bool dry_run = false;
  std::uint32_t process_count = 0;
  std::vector<std::string> profiles;
};

struct LeverView {
  std::string outcome;  ///< "applied", "pending", …: org.apusched1.Process.Applied
  std::string target;
  std::string value;
  std::string detail;
};

struct AgentView {
  std::uint32_t agents = 0;
  std::uint32_t queues = 0;
  std::uint64_t submitted = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t refused_queues = 0;
  std::uint64_t refused_allocations = 0;
  std::map<std::string, std::string> cu_masks;  ///< by PCI address
  std::optional<std::uint64_t> task_length_ns;
  std::optional<std::uint64_t> wait_count;
  std::optional<std::uint64_t> wait_p50_ns;
  std::optional<std::uint64_t> wait_p99_ns;
};

struct ControlView {
  std::string state;
  std::string why;
  double target_us = 0;
  double wait_us = 0;
  std::vector<std::string> engaged;
};

struct HistoryLine {
  double seconds_ago = 0;
  std::uint32_t pid = 0;
  std::string of;  ///< "cpu_wait" or "dispatch"
  std::string what;
  std::string lever;  ///< empty for a change of state
  std::string text;
  double before_us = 0;
  double after_us = 0;
};

struct AdmissionView {
  bool admits = true;
  std::chrono::milliseconds wait{0};  ///< at most
  std::string why;
};

struct ExplainLine {
  std::string what;
  std::string value;
  std::string why;
};

struct ProcessView {
  std::string object_path;
  std::uint32_t pid = 0;
  std::uint64_t start_time = 0;  ///< clock ticks since boot
  std::string executable;
  std::string unit;
  std::uint32_t user = 0;
  std::string work_class;
  std::string profile;
  std::string source;
  std::uint32_t threads = 0;
  std::uint32_t members = 0;
  std::vector<std::string> gpus;
  std::map<std::string, LeverView> levers;
  std::optional<AgentView> agent;
  std::optional<ControlView> control;
  std::optional<ControlView> gpu_control;
};

struct LatencyView {
  std::uint64_t count = 0;
  std::uint64_t lost = 0;
  std::uint32_t in_window = 0;
  std::chrono::nanoseconds p50{0};
  std::chrono::nanoseconds p95{0};
  std::chrono::nanoseconds p99{0};
  std::chrono::nanoseconds max{0};
};

/// A reading the hardware does not give is missing, never a number.
struct TelemetryView {
  std::optional<std::uint32_t> busy_percent;
  std::optional<double> temperature_celsius;
  std::optional<double> power_watts;
  std::optional<std::uint32_t> shader_clock_mhz;
  std::optional<std::uint64_t> vram_used_bytes;
  std::optional<std::uint64_t> gtt_used_bytes;
  std::optional<std::string> level;
  std::optional<std::string> level_rocm_smi;
  std::optional<double> age_seconds;
};

struct GpuView {
  std::string object_path;
  std::string pci_address;
  std::string name;
  std::string isa;
  std::uint32_t compute_units = 0;
  std::string performance_level;
  std::string performance_level_owner;  ///< "apusched", "other" or empty
  std::uint32_t queue_count = 0;
  std::uint32_t queue_limit = 0;
  bool oversubscribed = false;
  std::string helper;
  std::string probe_mode;
  TelemetryView telemetry;
  std::map<std::string, LatencyView> dispatch_latency;  ///< by source: "queue", "kernel"
};

struct StatusView {
  DaemonView daemon;
  std::vector<GpuView> gpus;
  std::vector<ProcessView> processes;
};

}  // namespace apusched::ctl
