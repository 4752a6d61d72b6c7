// SPDX-License-Identifier: MIT
#include "ctl/json.hpp"

#include <optional>

namespace apusched::ctl {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json known(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json document() {
  return Json{{"schema", kJsonSchema}};
}

Json json_of(const LeverView& lever) {
  return {{"outcome", lever.outcome},
          {"target", lever.target},
          {"value", lever.value},
          {"detail", lever.detail}};
}

Json json_of(const LatencyView& latency) {
  return {{"count", latency.count},         {"lost", latency.lost},
          {"in_window", latency.in_window}, {"p50_ns", latency.p50.count()},
          {"p95_ns", latency.p95.count()},  {"p99_ns", latency.p99.count()},
          {"max_ns", latency.max.count()}};
}

Json json_of(const TelemetryView& readings) {
  return {{"busy_percent", known(readings.busy_percent)},
          {"temperature_celsius", known(readings.temperature_celsius)},
          {"power_watts", known(readings.power_watts)},
          {"shader_clock_mhz", known(readings.shader_clock_mhz)},
          {"vram_used_bytes", known(readings.vram_used_bytes)},
          {"gtt_used_bytes", known(readings.gtt_used_bytes)},
          {"level", known(readings.level)},
          {"level_rocm_smi", known(readings.level_rocm_smi)},
          {"age_seconds", known(readings.age_seconds)}};
}

Json latencies(const GpuView& gpu) {
  Json sources = Json::object();
  for (const auto& [source, latency] : gpu.dispatch_latency) sources[source] = json_of(latency);
  return sources;
}

template <typename View>
Json array_of(const std::vector<View>& views) {
  Json array = Json::array();
  for (const auto& view : views) array.push_back(json_of(view));
  return array;
}

}  // namespace

Json json_of(const DaemonView& daemon) {
  return {{"version", daemon.version},
          {"state", daemon.state},
          {"degraded", daemon.degraded},
          {"dry_run", daemon.dry_run},
          {"process_count", daemon.process_count},
          {"profiles", daemon.profiles}};
}

Json json_of(const std::optional<AgentView>& agent) {
  if (!agent) return nullptr;
  return {{"agents", agent->agents},
          {"queues", agent->queues},
          {"submitted", agent->submitted},
          {"in_flight", agent->in_flight},
          {"memory_bytes", agent->memory_bytes},
          {"refused_queues", agent->refused_queues},
          {"refused_allocations", agent->refused_allocations},
          {"cu_masks", agent->cu_masks},
          {"task_length_ns", known(agent->task_length_ns)},
          {"wait_count", known(agent->wait_count)},
          {"wait_p50_ns", known(agent->wait_p50_ns)},
          {"wait_p99_ns", known(agent->wait_p99_ns)}};
}

Json json_of(const std::optional<ControlView>& control) {
  if (!control) return nullptr;
  return {{"state", control->state},
          {"why", control->why},
          {"target_us", control->target_us},
          {"wait_us", control->wait_us},
          {"engaged", control->engaged}};
}

Json json_history(const std::vector<HistoryLine>& lines) {
  Json all = document();
  all["lines"] = Json::array();
  for (const auto& line : lines)
    all["lines"].push_back({{"seconds_ago", line.seconds_ago},
                            {"pid", line.pid},
                            {"of", line.of},
                            {"what", line.what},
                            {"lever", text_or_null(line.lever)},
                            {"text", line.text},
                            {"before_us", line.before_us},
                            {"after_us", line.after_us}});
  return all;
}

Json json_explain(std::uint32_t pid, const std::vector<ExplainLine>& lines) {
  Json all = document();
  all["pid"] = pid;
  all["lines"] = Json::array();
  for (const auto& line : lines)
    all["lines"].push_back({{"what", line.what}, {"value", line.value}, {"why", line.why}});
  return all;
}

Json json_of(const ProcessView& process) {
  Json levers = Json::object();
  for (const auto& [name, lever] : process.levers) levers[name] = json_of(lever);
  return {{"object_path", process.object_path},
          {"pid", process.pid},
          {"start_time", process.start_time},
          {"executable", process.executable},
          {"unit", text_or_null(process.unit)},
          {"user", process.user},
          {"class", process.work_class},
          {"profile", process.profile},
          {"source", process.source},
          {"threads", process.threads},
          {"members", process.members},
          {"gpus", process.gpus},
          {"levers", std::move(levers)},
          {"agent", json_of(process.agent)},
          {"control", json_of(process.control)},
          {"gpu_control", json_of(process.gpu_control)}};
}

Json json_of(const GpuView& gpu) {
  return {{"object_path", gpu.object_path},
          {"pci_address", gpu.pci_address},
          {"name", gpu.name},
          {"isa", gpu.isa},
          {"compute_units", gpu.compute_units},
          {"performance_level", text_or_null(gpu.performance_level)},
          {"performance_level_owner", text_or_null(gpu.performance_level_owner)},
          {"queue_count", gpu.queue_count},
          {"queue_limit", gpu.queue_limit},
          {"oversubscribed", gpu.oversubscribed},
          {"helper", gpu.helper},
          {"probe_mode", gpu.probe_mode},
          {"telemetry", json_of(gpu.telemetry)},
          {"dispatch_latency", latencies(gpu)}};
}

Json json_of(const StatusView& status) {
  Json all = document();
  all["daemon"] = json_of(status.daemon);
  all["gpus"] = array_of(status.gpus);
  all["processes"] = array_of(status.processes);
  return all;
}

Json json_list(const std::vector<ProcessView>& processes) {
  Json all = document();
  all["processes"] = array_of(processes);
  return all;
}

Json json_gpus(const std::vector<GpuView>& gpus) {
  Json all = document();
  all["gpus"] = array_of(gpus);
  return all;
}

Json json_probe(const std::vector<GpuView>& gpus) {
  Json all = document();
  all["gpus"] = Json::array();
  for (const auto& gpu : gpus)
    all["gpus"].push_back({{"pci_address", gpu.pci_address},
                           {"helper", gpu.helper},
                           {"probe_mode", gpu.probe_mode},
                           {"dispatch_latency", latencies(gpu)}});
  return all;
}

std::string to_text(const Json& document, bool compact) {
  return document.dump(compact ? -1 : 2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace apusched::ctl
