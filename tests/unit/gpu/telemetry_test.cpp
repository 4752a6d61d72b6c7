// SPDX-License-Identifier: MIT
#include "gpu_helper/telemetry.hpp"

#include <gtest/gtest.h>

#include "gpu_helper/sysfs_gpu.hpp"
#include "gpu_helper/telemetry_parse.hpp"
#include "unit/temporary_tree.hpp"

namespace apusched::gpu_helper {
namespace {

const auto kGpu = *core::PciAddress::parse("0000:05:00.0");
using namespace std::string_literals;

TEST(TelemetryParse, reads_plain_numbers) {
  EXPECT_EQ(parse_busy_percent("37\n"), 37U);
  EXPECT_EQ(parse_busy_percent("0"), 0U);
  EXPECT_EQ(parse_temperature("51000\n"), 51.0);
  EXPECT_EQ(parse_temperature("-5000\n"), -5.0);
  EXPECT_EQ(parse_power("11000000\n"), 11.0);
  EXPECT_EQ(parse_clock_hz("400000000\n"), 400U);
  EXPECT_EQ(parse_memory("100663296\n"), 100663296U);
  EXPECT_EQ(parse_memory("0\n"), 0U);
}

TEST(TelemetryParse, takes_no_number_from_what_is_none) {
  for (const std::string& text :
       {""s, "\n"s, " "s, "N/A\n"s, "-\n"s, "12 34\n"s, "0x20\n"s, "1e3\n"s, "5\n\n"s, "nan\n"s,
        "99999999999999999999999\n"s, "\0\0\0"s, "37\0\n"s, "37\0garbage"s, " 37\n"s}) {
    EXPECT_FALSE(parse_busy_percent(text)) << text;
    EXPECT_FALSE(parse_temperature(text)) << text;
    EXPECT_FALSE(parse_power(text)) << text;
    EXPECT_FALSE(parse_clock_hz(text)) << text;
    EXPECT_FALSE(parse_memory(text)) << text;
  }
}

TEST(TelemetryParse, knows_the_patterns_that_mean_not_available) {
  for (const char* text : {"65535\n", "4294967295\n", "-1\n", "18446744073709551615\n"}) {
    EXPECT_FALSE(parse_busy_percent(text)) << text;
    EXPECT_FALSE(parse_temperature(text)) << text;
    EXPECT_FALSE(parse_power(text)) << text;
    EXPECT_FALSE(parse_clock_hz(text)) << text;
  }
  EXPECT_FALSE(parse_memory("18446744073709547520\n"));
  EXPECT_FALSE(parse_memory("4294967295\n"));
  EXPECT_FALSE(parse_memory("-1\n"));
  EXPECT_FALSE(parse_power("0\n"));
  EXPECT_FALSE(parse_busy_percent("101\n"));
}

TEST(TelemetryParse, takes_the_one_starred_row_of_a_clock_table) {
  EXPECT_EQ(parse_clock_table("0: 200Mhz \n1: 400Mhz *\n2: 1400Mhz \n"), 400U);
  EXPECT_EQ(parse_clock_table("0: 200Mhz\n1: 700Mhz\n   853Mhz *\n"), 853U);
  EXPECT_EQ(parse_clock_table("0: 400Mhz *"), 400U);
}

TEST(TelemetryParse, has_no_clock_with_two_stars_or_none) {
  EXPECT_FALSE(parse_clock_table("0: 400Mhz *\n1: 400Mhz *\n"));
  EXPECT_FALSE(parse_clock_table("0: 400Mhz\n1: 800Mhz\n"));
  EXPECT_FALSE(parse_clock_table(""));
  EXPECT_FALSE(parse_clock_table("*\n"));
  EXPECT_FALSE(parse_clock_table("0: *\n"));
  EXPECT_FALSE(parse_clock_table("0: 4294967295Mhz *\n"));
  EXPECT_FALSE(parse_clock_table("0: -3Mhz *\n"));
  EXPECT_FALSE(parse_clock_table("0: 400 *\n"));
  EXPECT_FALSE(parse_clock_table("1: 40"s + std::string(300, '\0') + "0Mhz *\n"));
}

class TelemetryTree : public testing::Test {
 protected:
  TelemetryTree() {
    put("gpu_busy_percent", "37\n");
    put("mem_info_vram_used", "1000\n");
    put("mem_info_gtt_used", "2000\n");
    put("power_dpm_force_performance_level", "auto\n");
    put("pp_dpm_sclk", "0: 200Mhz \n1: 700Mhz *\n");
    put("hwmon/hwmon0/name", "nvme\n");
    put("hwmon/hwmon0/temp1_input", "99000\n");
    put("hwmon/hwmon3/name", "amdgpu\n");
    put("hwmon/hwmon3/temp1_input", "51000\n");
    put("hwmon/hwmon3/power1_average", "11000000\n");
    put("hwmon/hwmon3/freq1_input", "400000000\n");
  }
  void put(const std::string& name, const std::string& text) {
    tree_.write("bus/pci/devices/0000:05:00.0/" + name, text);
  }
  void remove(const std::string& name) {
    std::filesystem::remove_all(tree_.path("bus/pci/devices/0000:05:00.0/" + name));
  }
  [[nodiscard]] ports::GpuTelemetry read() const { return read_telemetry(tree_.root(), kGpu); }
  tests::TemporaryTree tree_;
};

TEST_F(TelemetryTree, gives_every_reading) {
  const auto t = read();
  EXPECT_EQ(t.busy_percent, 37U);
  EXPECT_EQ(t.temperature_celsius, 51.0);
  EXPECT_EQ(t.power_watts, 11.0);
  EXPECT_EQ(t.shader_clock_mhz, 400U);
  EXPECT_EQ(t.vram_used_bytes, 1000U);
  EXPECT_EQ(t.gtt_used_bytes, 2000U);
  EXPECT_EQ(t.level, core::PerformanceLevel::automatic);
}

TEST_F(TelemetryTree, falls_back_where_a_sensor_has_another_file) {
  remove("hwmon/hwmon3/power1_average");
  put("hwmon/hwmon3/power1_input", "7500000\n");
  put("hwmon/hwmon3/freq1_input", "0\n");
  EXPECT_EQ(read().power_watts, 7.5);
  EXPECT_EQ(read().shader_clock_mhz, 700U);
}

TEST_F(TelemetryTree, loses_only_the_reading_whose_file_is_bad) {
  put("gpu_busy_percent", "");
  put("power_dpm_force_performance_level", "auto low\n");
  remove("mem_info_vram_used");
  const auto t = read();
  EXPECT_FALSE(t.busy_percent || t.level || t.vram_used_bytes);
  EXPECT_EQ(t.gtt_used_bytes, 2000U);
  EXPECT_EQ(t.temperature_celsius, 51.0);
}

TEST_F(TelemetryTree, is_read_in_turns_where_there_is_no_time) {
  TelemetryReader reader(tree_.root(), kGpu);
  ports::GpuTelemetry all;
  // Without any time one reading each: none is left out for good.
  for (int turn = 0; turn < 6; ++turn) {
    const auto t = reader.read(std::chrono::nanoseconds(-1));
    EXPECT_FALSE(reader.complete());
    if (t.busy_percent) all.busy_percent = t.busy_percent;
    if (t.temperature_celsius) all.temperature_celsius = t.temperature_celsius;
    if (t.power_watts) all.power_watts = t.power_watts;
    if (t.shader_clock_mhz) all.shader_clock_mhz = t.shader_clock_mhz;
    if (t.gtt_used_bytes) all.gtt_used_bytes = t.gtt_used_bytes;
    if (t.level) all.level = t.level;
    EXPECT_FALSE(t.busy_percent && t.power_watts);
  }
  EXPECT_TRUE(all.busy_percent && all.temperature_celsius && all.power_watts &&
              all.shader_clock_mhz && all.gtt_used_bytes && all.level);
  EXPECT_TRUE(reader.read(std::chrono::minutes(1)).busy_percent);
  EXPECT_TRUE(reader.complete());
}

TEST_F(TelemetryTree, takes_no_sensor_of_another_device) {
  put("hwmon/hwmon3/name", "k10temp\n");
  EXPECT_FALSE(read().temperature_celsius);
}

TEST_F(TelemetryTree, finds_the_device_through_its_card_where_the_bus_has_none) {
  std::filesystem::create_directories(tree_.path("devices/pci/0000:07:00.0"));
  std::filesystem::create_directories(tree_.path("class/drm/card1"));
  std::filesystem::create_symlink("../../../devices/pci/0000:07:00.0",
                                  tree_.path("class/drm/card1/device"));
  tree_.write("devices/pci/0000:07:00.0/gpu_busy_percent", "5\n");
  EXPECT_EQ(read_telemetry(tree_.root(), *core::PciAddress::parse("0000:07:00.0")).busy_percent,
            5U);
}

TEST_F(TelemetryTree, has_no_readings_of_a_device_that_is_not_there) {
  const auto other = *core::PciAddress::parse("0000:06:00.0");
  EXPECT_FALSE(read_telemetry(tree_.root(), other).busy_percent);
  EXPECT_EQ(find_device(tree_.root(), other).error().code, core::ErrorCode::gone);
}

}  // namespace
}  // namespace apusched::gpu_helper
