// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "ctl/render.hpp"

namespace apusched::ctl {
namespace {

std::string level_line(const GpuView& gpu, const Style& style) {
  if (gpu.performance_level.empty()) return style.paint(Tone::faint, "unknown");
  std::string text = printable(gpu.performance_level);
  if (gpu.performance_level_owner == "apusched")
    text += style.paint(Tone::good, " (set by apusched)");
  if (gpu.performance_level_owner == "other")
    text += style.paint(Tone::attention, " (changed by somebody else, left alone)");
  return text;
}

std::string telemetry_line(const TelemetryView& readings) {
  std::vector<std::string> parts;
  if (readings.busy_percent) parts.push_back(fmt::format("busy {} %", *readings.busy_percent));
  if (readings.temperature_celsius)
    parts.push_back(fmt::format("{:.1f} °C", *readings.temperature_celsius));
  if (readings.power_watts) parts.push_back(fmt::format("{:.1f} W", *readings.power_watts));
  if (readings.shader_clock_mhz) parts.push_back(fmt::format("{} MHz", *readings.shader_clock_mhz));
  if (readings.vram_used_bytes) parts.push_back("VRAM " + human_bytes(*readings.vram_used_bytes));
  if (readings.gtt_used_bytes) parts.push_back("GTT " + human_bytes(*readings.gtt_used_bytes));
  if (readings.level_rocm_smi && readings.level && *readings.level_rocm_smi != *readings.level)
    parts.push_back("rocm-smi reads level " + printable(*readings.level_rocm_smi));
  if (parts.empty()) return "no readings";
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : ", ") + part;
  if (readings.age_seconds) text += fmt::format(" ({:.1f} s ago)", *readings.age_seconds);
  return text;
}

std::string latency_table(const GpuView& gpu, const Style& style, std::string_view indent) {
  using enum Table::Align;
  if (gpu.dispatch_latency.empty()) return fmt::format("{}no latency samples\n", indent);
  Table table({left, right, right, right, right, right, right});
  table.row({{"LATENCY BY", Tone::strong},
             {"P50", Tone::strong},
             {"P95", Tone::strong},
             {"P99", Tone::strong},
             {"MAX", Tone::strong},
             {"SAMPLES", Tone::strong},
             {"LOST", Tone::strong}});
  for (const auto& [source, latency] : gpu.dispatch_latency)
    table.row({{printable(source)},
               {human(latency.p50)},
               {human(latency.p95)},
               {human(latency.p99)},
               {human(latency.max)},
               {fmt::format("{} of {}", latency.in_window, latency.count)},
               {std::to_string(latency.lost), latency.lost == 0 ? Tone::plain : Tone::attention}});
  return table.render(style, indent);
}

std::string heading(const GpuView& gpu, const Style& style) {
  return fmt::format(
      "{}  {} ({}, {})\n", style.paint(Tone::strong, "gpu " + printable(gpu.pci_address)),
      printable(gpu.name), printable(gpu.isa), counted(gpu.compute_units, "CU", "CUs"));
}

std::string render_gpu(const GpuView& gpu, const Style& style) {
  std::string text = heading(gpu, style);
  text += "  level      " + level_line(gpu, style) + "\n";
  text += fmt::format("  queues     {} of {}{}\n", gpu.queue_count, gpu.queue_limit,
                      gpu.oversubscribed
                          ? style.paint(Tone::attention, " (oversubscribed: queues take turns)")
                          : "");
  text += "  readings   " + telemetry_line(gpu.telemetry) + "\n";
  const bool degraded = gpu.helper.starts_with("degraded");
  text += fmt::format("  probe      {}, helper {}\n", printable(gpu.probe_mode),
                      style.paint(degraded ? Tone::bad : Tone::plain, printable(gpu.helper)));
  return text + latency_table(gpu, style, "  ");
}

}  // namespace

std::string render_gpus(const std::vector<GpuView>& gpus, const Style& style) {
  if (gpus.empty()) return "no GPU: only CPU settings apply\n";
  std::string text;
  for (const auto& gpu : gpus) text += (text.empty() ? "" : "\n") + render_gpu(gpu, style);
  return text;
}

std::string render_probe(const std::vector<GpuView>& gpus, const Style& style) {
  if (gpus.empty()) return "no GPU: nothing to probe\n";
  std::string text;
  for (const auto& gpu : gpus) {
    text += (text.empty() ? "" : "\n") + heading(gpu, style);
    text +=
        fmt::format("  probe {}, helper {}\n", printable(gpu.probe_mode), printable(gpu.helper));
    text += latency_table(gpu, style, "  ");
  }
  return text;
}

}  // namespace apusched::ctl
