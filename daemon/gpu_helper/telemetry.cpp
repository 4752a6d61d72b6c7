// SPDX-License-Identifier: MIT
#include "gpu_helper/telemetry.hpp"

#include <array>
#include <utility>

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

/// Where one GPU's files are; no hwmon: empty.
struct Places {
  std::string device;
  std::string hwmon;
};

using ReadOne = void (*)(const Places&, ports::GpuTelemetry&);

void read_level(const Places& at, ports::GpuTelemetry& out) {
  out.level =
      read_value(at.device + "/power_dpm_force_performance_level", core::parse_performance_level);
}
void read_busy(const Places& at, ports::GpuTelemetry& out) {
  out.busy_percent = read_value(at.device + "/gpu_busy_percent", parse_busy_percent);
}
void read_temperature(const Places& at, ports::GpuTelemetry& out) {
  if (!at.hwmon.empty())
    out.temperature_celsius = read_value(at.hwmon + "/temp1_input", parse_temperature);
}
void read_power(const Places& at, ports::GpuTelemetry& out) {
  if (at.hwmon.empty()) return;
  // Kernels before 6.4, and most APUs, average; newer ones may have the instant value only.
  out.power_watts = read_value(at.hwmon + "/power1_average", parse_power);
  if (!out.power_watts) out.power_watts = read_value(at.hwmon + "/power1_input", parse_power);
}
void read_clock(const Places& at, ports::GpuTelemetry& out) {
  if (!at.hwmon.empty())
    out.shader_clock_mhz = read_value(at.hwmon + "/freq1_input", parse_clock_hz);
  if (!out.shader_clock_mhz)
    out.shader_clock_mhz = read_value(at.device + "/pp_dpm_sclk", parse_clock_table);
}
void read_memory(const Places& at, ports::GpuTelemetry& out) {
  out.vram_used_bytes = read_value(at.device + "/mem_info_vram_used", parse_memory);
  out.gtt_used_bytes = read_value(at.device + "/mem_info_gtt_used", parse_memory);
}

constexpr std::array<ReadOne, 6> kReadings{read_level, read_busy,  read_temperature,
                                           read_power, read_clock, read_memory};

}  // namespace

TelemetryReader::TelemetryReader(std::string sysfs_root, core::PciAddress gpu)
    : sysfs_root_(std::move(sysfs_root)), gpu_(std::move(gpu)) {}

ports::GpuTelemetry TelemetryReader::read(std::chrono::nanoseconds budget) {
  ports::GpuTelemetry out;
  complete_ = true;
  const auto device = find_device(sysfs_root_, gpu_);
  if (!device) return out;
  const Places places{*device, find_hwmon(*device).value_or("")};
  const auto end = std::chrono::steady_clock::now() + budget;
  const std::size_t first = next_;
  for (std::size_t i = 0; i < kReadings.size(); ++i) {
    if (i > 0 && std::chrono::steady_clock::now() > end) {
      complete_ = false;
      return out;
    }
    next_ = (first + i + 1) % kReadings.size();
    kReadings[(first + i) % kReadings.size()](places, out);
  }
  return out;
}

ports::GpuTelemetry read_telemetry(const std::string& sysfs_root, const core::PciAddress& gpu) {
  return TelemetryReader(sysfs_root, gpu).read(std::chrono::hours(1));
}

}  // namespace apusched::gpu_helper
