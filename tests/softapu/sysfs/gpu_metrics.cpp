// SPDX-License-Identifier: MIT
#include "sysfs/gpu_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace apusched::softapu {
namespace {

constexpr double kCenti = 100;
constexpr double kMilli = 1000;

class Table {
 public:
  Table(std::size_t size, std::uint8_t format, std::uint8_t content) : bytes_(size, '\xff') {
    put<std::uint16_t>(0, static_cast<double>(size));
    bytes_[2] = static_cast<char>(format);
    bytes_[3] = static_cast<char>(content);
  }
  // Little-endian, as every machine with such a GPU is.
  template <class T>
  void put(std::size_t offset, double value) {
    constexpr double kMost = static_cast<double>(std::numeric_limits<T>::max() - 1);
    const auto number = static_cast<T>(std::llround(std::clamp(value, 0.0, kMost)));
    for (std::size_t i = 0; i < sizeof(T); i++)
      bytes_[offset + i] = static_cast<char>(number >> (8 * i) & 0xffU);
  }
  void put16(std::size_t offset, double value) { put<std::uint16_t>(offset, value); }
  void put32(std::size_t offset, double value) { put<std::uint32_t>(offset, value); }
  void put_clock_counter(std::size_t offset, const Readings& r) {
    put<std::uint64_t>(offset, static_cast<double>(r.now.count()));
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// yellow_carp_ppt.c, smu_v13_0_4_ppt.c; renoir_ppt.c adds indep_throttle_status in v2.2.
std::string v2(const Readings& r, double mclk, bool renoir) {
  Table t(renoir ? 128 : 120, 2, renoir ? 2 : 1);
  t.put16(4, r.temperature_c * kCenti);
  t.put16(6, r.temperature_c * kCenti);
  t.put16(28, r.busy_percent * (renoir ? 1 : kCenti));
  t.put_clock_counter(32, r);
  t.put16(40, r.power_w * kMilli);
  t.put16(42, r.cpu_power_w * kMilli);
  t.put16(46, r.gfx_power_w * kMilli);
  t.put16(64, r.sclk_mhz);
  t.put16(68, mclk);
  t.put16(76, r.sclk_mhz);
  t.put16(80, mclk);
  t.put32(108, r.throttled);
  if (renoir) t.put<std::uint64_t>(120, r.throttled);
  return t.bytes();
}

// smu_v14_0_0_ppt.c. Residencies count up while a throttler is active.
std::string v3(const Readings& r, double mclk) {
  Table t(264, 3, 0);
  t.put16(4, r.temperature_c * kCenti);
  t.put16(6, r.temperature_c * kCenti);
  t.put16(40, r.temperature_c * kCenti);
  t.put16(42, r.busy_percent);
  t.put_clock_counter(104, r);
  t.put32(112, r.power_w * kMilli);
  t.put32(120, r.power_w * kMilli);
  t.put32(124, r.gfx_power_w * kMilli);
  t.put32(132, r.cpu_power_w * kMilli);
  t.put16(174, r.sclk_mhz);
  t.put16(186, mclk);
  t.put32(236, (r.throttled & kThrottlePower) != 0 ? 1 : 0);
  t.put32(248, (r.throttled & kThrottleHeat) != 0 ? 1 : 0);
  return t.bytes();
}

// smu_v13_0_6_ppt.c: degrees and watts.
std::string v1_5(const Readings& r) {
  Table t(360, 1, 5);
  t.put16(4, r.temperature_c);
  t.put16(6, r.temperature_c);
  t.put16(8, r.temperature_c);
  t.put16(10, r.power_w);
  t.put16(12, r.busy_percent);
  t.put_clock_counter(96, r);
  t.put16(312, r.sclk_mhz);
  return t.bytes();
}

}  // namespace

std::string gpu_metrics(MetricsFormat format, const Readings& readings, std::uint32_t mclk_mhz,
                        bool all_unknown) {
  std::string bytes;
  switch (format) {
    case MetricsFormat::none:
      break;
    case MetricsFormat::v1_5:
      bytes = v1_5(readings);
      break;
    case MetricsFormat::v2_1:
    case MetricsFormat::v2_2:
      bytes = v2(readings, mclk_mhz, format == MetricsFormat::v2_2);
      break;
    case MetricsFormat::v3_0:
      bytes = v3(readings, mclk_mhz);
      break;
  }
  constexpr std::size_t kHeader = 4;
  if (all_unknown && !bytes.empty()) std::fill(bytes.begin() + kHeader, bytes.end(), '\xff');
  return bytes;
}

}  // namespace apusched::softapu
