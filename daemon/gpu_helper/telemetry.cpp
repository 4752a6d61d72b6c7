// SPDX-License-Identifier: MIT
#include "gpu_helper/telemetry.hpp"

#include "gpu_helper/sysfs_gpu.hpp"
#include "gpu_helper/telemetry_parse.hpp"

namespace apusched::gpu_helper {
namespace {

template <typename Parse>
auto read_value(const std::string& path, Parse&& parse) -> decltype(parse(std::string_view())) {
  const auto text = read_sysfs(path);
  if (!text) return std::nullopt;
  return parse(*text);
}

void read_sensors(const std::string& hwmon, ports::GpuTelemetry& out) {
  out.temperature_celsius = read_value(hwmon + "/temp1_input", parse_temperature);
  // Kernels before 6.4, and most APUs, average; newer ones may have the instant value only.
  out.power_watts = read_value(hwmon + "/power1_average", parse_power);
  if (!out.power_watts) out.power_watts = read_value(hwmon + "/power1_input", parse_power);
  out.shader_clock_mhz = read_value(hwmon + "/freq1_input", parse_clock_hz);
}

}  // namespace

ports::GpuTelemetry read_telemetry(const std::string& sysfs_root, const core::PciAddress& gpu) {
  ports::GpuTelemetry out;
  const auto device = find_device(sysfs_root, gpu);
  if (!device) return out;
  if (const auto hwmon = find_hwmon(*device)) read_sensors(*hwmon, out);
  if (!out.shader_clock_mhz)
    out.shader_clock_mhz = read_value(*device + "/pp_dpm_sclk", parse_clock_table);
  out.busy_percent = read_value(*device + "/gpu_busy_percent", parse_busy_percent);
  out.vram_used_bytes = read_value(*device + "/mem_info_vram_used", parse_memory);
  out.gtt_used_bytes = read_value(*device + "/mem_info_gtt_used", parse_memory);
  out.level =
      read_value(*device + "/power_dpm_force_performance_level", core::parse_performance_level);
  return out;
}

}  // namespace apusched::gpu_helper
