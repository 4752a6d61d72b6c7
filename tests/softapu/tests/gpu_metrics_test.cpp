// SPDX-License-Identifier: MIT
#include "sysfs/gpu_metrics.h"

#include <gtest/gtest.h>

namespace apusched::softapu {
namespace {

std::uint64_t at(const std::string& bytes, std::size_t offset, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; i++)
    value |= std::uint64_t{static_cast<unsigned char>(bytes[offset + i])} << (8 * i);
  return value;
}

Readings some() {
  Readings r;
  r.now = std::chrono::nanoseconds{123456789};
  r.sclk_mhz = 1800;
  r.busy_percent = 42;
  r.power_w = 21.5;
  r.gfx_power_w = 15;
  r.cpu_power_w = 2.5;
  r.temperature_c = 61.25;
  r.throttled = kThrottleHeat;
  return r;
}

// Sizes and offsets of the structures in kgd_pp_interface.h.
TEST(GpuMetrics, has_the_header_of_its_format) {
  const std::pair<MetricsFormat, std::array<std::uint64_t, 3>> expected[] = {
      {MetricsFormat::v1_5, {360, 1, 5}},
      {MetricsFormat::v2_1, {120, 2, 1}},
      {MetricsFormat::v2_2, {128, 2, 2}},
      {MetricsFormat::v3_0, {264, 3, 0}},
  };
  for (const auto& [format, header] : expected) {
    const std::string bytes = gpu_metrics(format, some(), 2400);
    EXPECT_EQ(bytes.size(), header[0]);
    EXPECT_EQ(at(bytes, 0, 2), header[0]);
    EXPECT_EQ(at(bytes, 2, 1), header[1]);
    EXPECT_EQ(at(bytes, 3, 1), header[2]);
  }
  EXPECT_TRUE(gpu_metrics(MetricsFormat::none, some(), 2400).empty());
}

TEST(GpuMetrics, of_version_2_1_counts_in_hundredths_and_milliwatts) {
  const std::string bytes = gpu_metrics(MetricsFormat::v2_1, some(), 2400);
  EXPECT_EQ(at(bytes, 4, 2), 6125U);
  EXPECT_EQ(at(bytes, 28, 2), 4200U);
  EXPECT_EQ(at(bytes, 32, 8), 123456789U);
  EXPECT_EQ(at(bytes, 40, 2), 21500U);
  EXPECT_EQ(at(bytes, 46, 2), 15000U);
  EXPECT_EQ(at(bytes, 76, 2), 1800U);
  EXPECT_EQ(at(bytes, 108, 4), kThrottleHeat);
  EXPECT_EQ(at(bytes, 24, 2), 0xffffU) << "what the model does not know";
}

TEST(GpuMetrics, of_version_3_0_has_plain_percent) {
  const std::string bytes = gpu_metrics(MetricsFormat::v3_0, some(), 2400);
  EXPECT_EQ(at(bytes, 42, 2), 42U);
  EXPECT_EQ(at(bytes, 112, 4), 21500U);
  EXPECT_EQ(at(bytes, 248, 4), 1U);
}

TEST(GpuMetrics, can_be_unknown_throughout) {
  const std::string bytes = gpu_metrics(MetricsFormat::v2_2, some(), 2400, true);
  EXPECT_EQ(at(bytes, 0, 2), 128U);
  EXPECT_EQ(bytes.find_first_not_of('\xff', 4), std::string::npos);
}

}  // namespace
}  // namespace apusched::softapu
