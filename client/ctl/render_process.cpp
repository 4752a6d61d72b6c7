// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "ctl/render.hpp"

namespace apusched::ctl {
namespace {

Tone tone_of(std::string_view outcome) {
  if (outcome == "applied") return Tone::good;
  if (outcome == "pending" || outcome == "dry_run" || outcome == "contended" ||
      outcome == "standby")
    return Tone::attention;
  if (outcome == "denied" || outcome == "failed") return Tone::bad;
  return Tone::faint;
}

std::string spoken(std::string_view outcome) {
  return outcome == "dry_run" ? "dry run" : printable(outcome);
}

void lever_row(Table& table, std::string_view name, const LeverView& lever) {
  table.row({{printable(name)},
             {spoken(lever.outcome), tone_of(lever.outcome)},
             {printable(lever.value)},
             {printable(lever.target)},
             {printable(lever.detail), Tone::faint}});
}

std::string lever_table(const std::map<std::string, LeverView>& levers, const Style& style) {
  using enum Table::Align;
  // the order in which they act on a process, then whatever a newer daemon may know
  constexpr std::array<std::string_view, 17> kOrder{
      "nice",         "scheduling",     "io_class",    "autogroup",
      "cpu_weight",   "slice_weight",   "io_weight",   "performance_level",
      "cu_mask",      "queue_priority", "serial",      "queue_limit",
      "memory_limit", "cpu_latency",    "timer_slack", "energy_preference",
      "freezer"};
  Table table({left, left, left, left, left});
  table.row({{"LEVER", Tone::strong},
             {"OUTCOME", Tone::strong},
             {"VALUE", Tone::strong},
             {"TARGET", Tone::strong},
             {"WHY", Tone::strong}});
  for (const auto name : kOrder)
    if (const auto lever = levers.find(std::string(name)); lever != levers.end())
      lever_row(table, name, lever->second);
  for (const auto& [name, lever] : levers)
    if (std::ranges::find(kOrder, name) == kOrder.end()) lever_row(table, name, lever);
  return table.render(style, "  ");
}

std::string agent_text(const AgentView& agent) {
  auto text = fmt::format("  agent: {}, {} submitted, {} in flight, {} allocated",
                          counted(agent.queues, "queue", "queues"),
                          counted(agent.submitted, "dispatch", "dispatches"), agent.in_flight,
                          human_bytes(agent.memory_bytes));
  using std::chrono::nanoseconds;
  if (agent.task_length_ns)
    text += fmt::format(", kernels of {}", human(nanoseconds(*agent.task_length_ns)));
  if (agent.wait_p50_ns && agent.wait_p99_ns)
    text += fmt::format(", waits p50 {} p99 {}", human(nanoseconds(*agent.wait_p50_ns)),
                        human(nanoseconds(*agent.wait_p99_ns)));
  for (const auto& [gpu, mask] : agent.cu_masks)
    text += fmt::format(", CUs {} of {}", printable(mask), printable(gpu));
  return text + "\n";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + printable(word);
  return text;
}

std::string control_text(std::string_view what, const ControlView& control, const Style& style) {
  const auto tone = control.state == "meeting"     ? Tone::good
                    : control.state == "violating" ? Tone::attention
                    : control.state == "saturated" ? Tone::bad
                                                   : Tone::plain;
  auto text = fmt::format("  {}: {}, waits {:.0f} µs", what,
                          style.paint(tone, printable(control.state)), control.wait_us);
  if (control.target_us > 0) text += fmt::format(", at most {:.0f}", control.target_us);
  if (!control.engaged.empty()) text += ", stronger now: " + joined(control.engaged);
  if (control.why.starts_with(control.state) && control.why.size() > control.state.size())
    text += style.paint(Tone::faint, printable(control.why.substr(control.state.size())));
  return text + "\n";
}

std::string extent(const ProcessView& process) {
  return fmt::format("{} in {}", counted(process.threads, "thread", "threads"),
                     counted(process.members, "process", "processes"));
}

}  // namespace

std::string render_process(const ProcessView& process, const Style& style) {
  std::string text = fmt::format(
      "{}  {}  {} ({})\n", style.paint(Tone::strong, fmt::format("process {}", process.pid)),
      printable(process.executable), printable(process.profile), printable(process.work_class));
  text += fmt::format("  {}, uid {}, asked for by {}\n", extent(process), process.user,
                      printable(process.source));
  text += fmt::format("  unit {}, {}\n", process.unit.empty() ? "unknown" : printable(process.unit),
                      process.gpus.empty() ? "no GPU queues" : "queues on " + joined(process.gpus));
  if (process.control) text += control_text("CPU target", *process.control, style);
  if (process.gpu_control) text += control_text("GPU target", *process.gpu_control, style);
  if (process.agent) text += agent_text(*process.agent);
  if (process.levers.empty()) return text + "  no levers: the profile asks for nothing\n";
  return text + lever_table(process.levers, style);
}

std::string render_explain(std::uint32_t pid, const std::vector<ExplainLine>& lines,
                           const Style& style) {
  using enum Table::Align;
  Table table({left, left, left});
  for (const auto& line : lines)
    table.row({{printable(line.what), Tone::strong},
               {printable(line.value)},
               {printable(line.why), Tone::faint}});
  return fmt::format("process {}\n", pid) + table.render(style, "  ");
}

std::string render_history(const std::vector<HistoryLine>& lines, const Style& style) {
  using enum Table::Align;
  if (lines.empty()) return "nothing was decided yet\n";
  Table table({right, right, left, left, left});
  for (const auto& line : lines) {
    auto text = printable(line.text);
    if (line.before_us > 0 || line.after_us > 0)
      text +=
          fmt::format(" (waits: {:.0f} µs before, {:.0f} µs after)", line.before_us, line.after_us);
    table.row({{fmt::format("{:.1f} s ago", line.seconds_ago), Tone::faint},
               {std::to_string(line.pid)},
               {line.of == "dispatch" ? "GPU" : "CPU"},
               {line.lever.empty() ? printable(line.what)
                                   : printable(line.lever) + " " + printable(line.what),
                Tone::strong},
               {text}});
  }
  return table.render(style, "");
}

std::string render_list(const std::vector<ProcessView>& processes, const Style& style) {
  using enum Table::Align;
  if (processes.empty()) return "no registered processes\n";
  Table table({right, left, left, right, left, left});
  table.row({{"PID", Tone::strong},
             {"PROFILE", Tone::strong},
             {"CLASS", Tone::strong},
             {"THREADS", Tone::strong},
             {"UNIT", Tone::strong},
             {"EXECUTABLE", Tone::strong}});
  for (const auto& process : processes)
    table.row({{std::to_string(process.pid)},
               {printable(process.profile)},
               {printable(process.work_class)},
               {std::to_string(process.threads)},
               {process.unit.empty() ? "-" : printable(process.unit)},
               {printable(process.executable)}});
  return table.render(style, "");
}

}  // namespace apusched::ctl
