// SPDX-License-Identifier: MIT
#include "platform/sysfs_power.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace apusched::platform {
namespace {

class SysfsPowerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/apusched-power-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    const auto file = std::filesystem::path(root_) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void supply(const std::string& name, const std::string& type, const std::string& file,
              const std::string& text) {
    write("class/power_supply/" + name + "/type", type + "\n");
    write("class/power_supply/" + name + "/" + file, text + "\n");
  }
  bool saving() { return SysfsPower(root_).saving(); }

  std::string root_;
};

TEST_F(SysfsPowerTest, a_machine_without_supplies_does_not_save) {
  EXPECT_FALSE(saving());
}

TEST_F(SysfsPowerTest, a_discharging_battery_without_mains_is_battery_power) {
  supply("BAT0", "Battery", "status", "Discharging");
  supply("AC", "Mains", "online", "0");
  EXPECT_TRUE(saving());
  supply("AC", "Mains", "online", "1");
  EXPECT_FALSE(saving());
}

TEST_F(SysfsPowerTest, the_battery_of_a_mouse_is_none_of_the_machine) {
  supply("hidpp_battery_0", "Battery", "status", "Discharging");
  write("class/power_supply/hidpp_battery_0/scope", "Device\n");
  EXPECT_FALSE(saving());
}

TEST_F(SysfsPowerTest, a_power_saving_profile_is_seen_where_it_is_written) {
  write("firmware/acpi/platform_profile", "balanced\n");
  EXPECT_FALSE(saving());
  write("firmware/acpi/platform_profile", "low-power\n");
  EXPECT_TRUE(saving());
  write("firmware/acpi/platform_profile", "performance\n");
  const auto* preference = "devices/system/cpu/cpu0/cpufreq/energy_performance_preference";
  write(preference, "power\n");
  EXPECT_TRUE(saving());
  write(preference, "balance_power\n");
  EXPECT_FALSE(saving());
}

TEST_F(SysfsPowerTest, garbage_is_no_reason_to_save) {
  supply("BAT0", "Battery", "status", std::string(100000, 'x'));
  write("firmware/acpi/platform_profile", std::string("\0low-power", 10));
  EXPECT_FALSE(saving());
}

}  // namespace
}  // namespace apusched::platform
