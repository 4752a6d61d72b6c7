// SPDX-License-Identifier: MIT
#include "bus/marshal.hpp"

namespace apusched::bus {
namespace {

std::uint64_t count(std::chrono::nanoseconds value) {
  return static_cast<std::uint64_t>(value.count());
}

}  // namespace

AppliedMap applied_of(const app::ProcessView& view) {
  AppliedMap result;
  for (const auto& lever : view.levers)
    result.emplace(core::to_string(lever.kind),
                   sdbus::make_struct(std::string(core::to_string(lever.outcome)), lever.target,
                                      lever.value, lever.detail));
  return result;
}

LatencyMap latency_of(const app::GpuView& view) {
  LatencyMap result;
  for (const auto& [source, summary] : view.latency)
    result.emplace(
        core::to_string(source),
        sdbus::make_struct(summary.total, summary.lost,
                           static_cast<std::uint32_t>(summary.in_window), count(summary.p50),
                           count(summary.p95), count(summary.p99), count(summary.max)));
  return result;
}

Properties telemetry_of(const app::GpuView& view) {
  Properties result;
  if (!view.telemetry) return result;
  const auto& reading = *view.telemetry;
  const auto put = [&](const char* name, const auto& value) {
    if (value) result.emplace(name, sdbus::Variant(*value));
  };
  put("busy_percent", reading.busy_percent);
  put("temperature_celsius", reading.temperature_celsius);
  put("power_watts", reading.power_watts);
  put("shader_clock_mhz", reading.shader_clock_mhz);
  put("vram_used_bytes", reading.vram_used_bytes);
  put("gtt_used_bytes", reading.gtt_used_bytes);
  if (reading.level)
    result.emplace("level", sdbus::Variant(std::string(core::to_string(*reading.level))));
  if (reading.level_rsmi)
    result.emplace("level_rocm_smi",
                   sdbus::Variant(std::string(core::to_string(*reading.level_rsmi))));
  constexpr double kPerSecond = 1000.0;
  result.emplace("age_seconds",
                 sdbus::Variant(static_cast<double>(view.telemetry_age.count()) / kPerSecond));
  return result;
}

Properties agent_of(const app::ProcessView& view) {
  if (!view.agent) return {};
  const auto& agent = *view.agent;
  Properties result{{"agents", sdbus::Variant(agent.agents)},
                    {"queues", sdbus::Variant(agent.queues)},
                    {"submitted", sdbus::Variant(agent.submitted)},
                    {"in_flight", sdbus::Variant(agent.in_flight)},
                    {"memory_bytes", sdbus::Variant(agent.memory_bytes)},
                    {"refused_queues", sdbus::Variant(agent.refused_queues)},
                    {"refused_allocations", sdbus::Variant(agent.refused_allocations)},
                    {"cu_masks", sdbus::Variant(agent.masks)}};
  if (agent.task_length)
    result.emplace("task_length_ns", sdbus::Variant(count(*agent.task_length)));
  if (agent.waits) {
    result.emplace("wait_count", sdbus::Variant(agent.waits->total));
    result.emplace("wait_p50_ns", sdbus::Variant(count(agent.waits->p50)));
    result.emplace("wait_p99_ns", sdbus::Variant(count(agent.waits->p99)));
  }
  return result;
}

Properties control_of(const std::optional<app::ControlView>& control) {
  if (!control) return {};
  return {{"state", sdbus::Variant(control->state)},
          {"why", sdbus::Variant(control->why)},
          {"target_us", sdbus::Variant(control->target_us)},
          {"wait_us", sdbus::Variant(control->wait_us)},
          {"engaged", sdbus::Variant(control->engaged)}};
}

Properties history_line(const app::HistoryLine& line, double seconds_ago) {
  return {{"seconds_ago", sdbus::Variant(seconds_ago)},
          {"pid", sdbus::Variant(static_cast<std::uint32_t>(line.pid.value()))},
          {"of", sdbus::Variant(std::string(core::to_string(line.of)))},
          {"what", sdbus::Variant(line.what)},
          {"lever", sdbus::Variant(line.lever)},
          {"text", sdbus::Variant(line.text)},
          {"before_us", sdbus::Variant(line.before_us)},
          {"after_us", sdbus::Variant(line.after_us)}};
}

bool oversubscribed(const app::GpuView& view) {
  return view.facts.queue_limit > 0 && view.queue_count > view.facts.queue_limit;
}

Properties properties_of(const app::ProcessView& view) {
  return {{"Pid", sdbus::Variant(static_cast<std::uint32_t>(view.key.pid.value()))},
          {"StartTime", sdbus::Variant(view.key.start.ticks)},
          {"Executable", sdbus::Variant(view.executable)},
          {"Unit", sdbus::Variant(view.unit)},
          {"User", sdbus::Variant(view.uid)},
          {"Class", sdbus::Variant(std::string(core::to_string(view.work_class)))},
          {"Profile", sdbus::Variant(view.profile)},
          {"Source", sdbus::Variant(view.source)},
          {"Applied", sdbus::Variant(applied_of(view))},
          {"Threads", sdbus::Variant(view.threads)},
          {"Members", sdbus::Variant(view.members)},
          {"Gpus", sdbus::Variant(view.gpus)},
          {"AgentAttached", sdbus::Variant(view.agent.has_value())},
          {"Agent", sdbus::Variant(agent_of(view))},
          {"ControlState", sdbus::Variant(view.control ? view.control->state : std::string())},
          {"Control", sdbus::Variant(control_of(view.control))},
          {"GpuControl", sdbus::Variant(control_of(view.gpu_control))}};
}

Properties properties_of(const app::GpuView& view) {
  return {{"PciAddress", sdbus::Variant(view.facts.pci.text())},
          {"Name", sdbus::Variant(view.facts.name)},
          {"Isa", sdbus::Variant(view.facts.isa)},
          {"ComputeUnits", sdbus::Variant(view.facts.compute_units)},
          {"PerformanceLevel", sdbus::Variant(view.level)},
          {"PerformanceLevelOwner", sdbus::Variant(view.level_owner)},
          {"Telemetry", sdbus::Variant(telemetry_of(view))},
          {"QueueCount", sdbus::Variant(view.queue_count)},
          {"QueueLimit", sdbus::Variant(view.facts.queue_limit)},
          {"Oversubscribed", sdbus::Variant(oversubscribed(view))},
          {"Helper", sdbus::Variant(view.helper)},
          {"ProbeMode", sdbus::Variant(view.probe_mode)},
          {"DispatchLatency", sdbus::Variant(latency_of(view))}};
}

}  // namespace apusched::bus
