// SPDX-License-Identifier: MIT
#include "device/power.h"

#include <algorithm>
#include <cmath>

namespace apusched::softapu {
namespace {

constexpr double kNsPerMs = 1e6;
// Of the range of clocks, per millisecond over the limit of temperature. Assumed.
constexpr double kThermalStepPerMs = 0.004;
constexpr double kThermalHysteresis = 2.0;  // degrees
// Share of the graphics power that does not scale with the square of the clock. Assumed.
constexpr double kStatic = 0.2;

std::uint32_t lowest(const DeviceState& s) {
  return s.description.sclk.mhz[0];
}
std::uint32_t highest(const DeviceState& s) {
  return s.description.sclk.mhz[s.description.sclk.count - 1];
}

double activity(const DeviceState& s) {
  return clock_is_pinned(s) ? 1.0 : s.load;
}

double power_scale(double clock, double top) {
  return kStatic + (1 - kStatic) * clock / top * clock / top;
}

bool gfxoff_allowed(const DeviceState& s) {
  const PowerDescription& p = s.description.power;
  if (p.gfxoff_after_us == 0 || clock_is_pinned(s)) return false;
  if (p.queues_forbid_gfxoff != 0 && s.queue_count > 0) return false;
  // profile_* ungate clocks and power (amdgpu_dpm.c); low and high do not.
  return s.level != Level::profile_standard && s.level != Level::profile_peak &&
         s.level != Level::profile_min_sclk && s.level != Level::profile_min_mclk;
}

void enter_gfxoff(DeviceState& s, bool executing) {
  if (executing) s.idle_since_ns = s.now_ns;
  const std::int64_t after = std::int64_t{s.description.power.gfxoff_after_us} * 1000;
  const bool off = gfxoff_allowed(s) && s.now_ns - s.idle_since_ns >= after;
  if (off && s.gfx_off == 0) s.gfxoff_entries++;
  s.gfx_off = off ? 1 : 0;
}

void choose_mclk(DeviceState& s) {
  const std::uint32_t top = s.description.mclk.count - 1;
  switch (s.level) {
    case Level::low:
    case Level::profile_min_mclk:
      s.mclk_index = 0;
      break;
    case Level::high:
    case Level::profile_peak:
      s.mclk_index = top;
      break;
    case Level::manual:
      break;
    default:
      s.mclk_index = activity(s) > 0.1 ? top : 0;
  }
}

void cool(DeviceState& s, double elapsed_ms) {
  const PowerDescription& p = s.description.power;
  if (p.limit_c <= 0) return;
  if (s.temperature_c > p.limit_c)
    s.thermal_cap -= kThermalStepPerMs * elapsed_ms;
  else if (s.temperature_c < p.limit_c - kThermalHysteresis)
    s.thermal_cap += kThermalStepPerMs * elapsed_ms;
  s.thermal_cap = std::clamp(s.thermal_cap, 0.0, 1.0);
}

}  // namespace

bool settled(const DeviceState& s) {
  constexpr double kNoLoad = 1e-4;
  constexpr double kDegrees = 0.05;
  const PowerDescription& p = s.description.power;
  const double target = p.ambient_c + p.c_per_w * (s.power_w - p.idle_w);
  return s.live_count == 0 && !s.faults.may_halt() && s.load < kNoLoad &&
         s.busy_percent == (clock_is_pinned(s) ? 100 : 0) &&
         (s.gfx_off != 0) == gfxoff_allowed(s) && std::abs(s.temperature_c - target) < kDegrees &&
         (p.limit_c <= 0 || s.thermal_cap >= 1);
}

bool clock_is_pinned(const DeviceState& s) {
  if (s.description.power.two_clients_pin_clock == 0 || s.queue_count < 2) return false;
  std::uint32_t first = kMaxClients;
  for (const QueueState& queue : s.queues) {
    if (queue.used == 0) continue;
    if (first == kMaxClients) first = queue.client;
    if (queue.client != first) return true;
  }
  return false;
}

std::uint32_t wanted_sclk_mhz(const DeviceState& s) {
  const std::uint32_t low = lowest(s);
  const std::uint32_t top = highest(s);
  switch (s.level) {
    case Level::low:
    case Level::profile_min_sclk:
      return low;
    case Level::high:
    case Level::profile_peak:
      return top;
    case Level::profile_standard:
      return s.description.sclk.mhz[s.description.sclk.count / 2];
    case Level::manual:
      return s.sclk_mhz;
    default:
      break;
  }
  // Full clock from 80 % load, as a governor with some head-room does.
  const double part = std::min(1.0, activity(s) * 1.25);
  return low + static_cast<std::uint32_t>(std::lround(part * (top - low)));
}

std::uint32_t sclk_limit_mhz(DeviceState& s) {
  const PowerDescription& p = s.description.power;
  const double low = lowest(s);
  const double top = highest(s);
  const double heat = low + s.thermal_cap * (top - low);
  double power = top;
  const double left = p.tdp_w - p.idle_w - p.cpu_w * s.cpu_load;
  const double full = p.gfx_w * activity(s);
  if (p.tdp_w > 0 && full > left) {
    const double scale = (std::max(0.0, left / full) - kStatic) / (1 - kStatic);
    power = std::max(low, top * std::sqrt(std::max(0.0, scale)));
  }
  const auto limit = static_cast<std::uint32_t>(std::lround(std::min(heat, power)));
  s.throttled = 0;
  if (limit >= wanted_sclk_mhz(s)) return limit;
  s.throttled = heat < power ? kThrottleHeat : kThrottlePower;
  return limit;
}

void settle_power(DeviceState& s, std::int64_t elapsed_ns, bool executing) {
  const PowerDescription& p = s.description.power;
  const double elapsed_ms = static_cast<double>(elapsed_ns) / kNsPerMs;
  enter_gfxoff(s, executing);
  s.cpu_power_w = p.cpu_w * s.cpu_load;
  s.gfx_power_w =
      s.gfx_off != 0 ? 0.0 : p.gfx_w * activity(s) * power_scale(s.sclk_mhz, highest(s));
  s.power_w = p.idle_w + s.gfx_power_w + s.cpu_power_w;
  if (s.temperature_c <= 0) s.temperature_c = p.ambient_c;
  const double target = p.ambient_c + p.c_per_w * (s.power_w - p.idle_w);
  const double keep = p.thermal_time_ms > 0 ? std::exp(-elapsed_ms / p.thermal_time_ms) : 0.0;
  s.temperature_c = target + (s.temperature_c - target) * keep;
  cool(s, elapsed_ms);
}

bool choose_clocks(DeviceState& s) {
  choose_mclk(s);
  const double elapsed_ms = static_cast<double>(s.now_ns - s.clock_ns) / kNsPerMs;
  s.clock_ns = s.now_ns;
  const std::uint32_t before = s.sclk_mhz;
  const std::uint32_t target = std::min(wanted_sclk_mhz(s), sclk_limit_mhz(s));
  const double step = s.description.power.ramp_mhz_per_ms * elapsed_ms;
  if (s.description.power.ramp_mhz_per_ms == 0 || s.sclk_mhz == 0)
    s.sclk_mhz = target;
  else
    s.sclk_mhz = static_cast<std::uint32_t>(std::lround(std::clamp<double>(
        target, s.sclk_mhz - std::min<double>(step, s.sclk_mhz), s.sclk_mhz + step)));
  s.sclk_mhz = std::max(s.sclk_mhz, lowest(s));
  return s.sclk_mhz != before;
}

}  // namespace apusched::softapu
