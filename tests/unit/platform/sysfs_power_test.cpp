// SPDX-License-Identifier: MIT
#include "platform/sysfs_power.hpp"

#include <gtest/gtest.h>

#include "unit/temporary_tree.hpp"

namespace apusched::platform {
namespace {

class SysfsPowerTest : public ::testing::Test {
 protected:
  void supply(const std::string& name, const std::string& type, const std::string& file,
              const std::string& text) {
    tree_.write("class/power_supply/" + name + "/type", type + "\n");
    tree_.write("class/power_supply/" + name + "/" + file, text + "\n");
  }
  /// Of a policy and, as the kernel has it, below its first CPU.
  void preference(int cpu, const std::string& word) {
    const auto number = std::to_string(cpu);
    for (const auto& folder : {"cpufreq/policy" + number, "cpu" + number + "/cpufreq"})
      tree_.write("devices/system/cpu/" + folder + "/energy_performance_preference", word + "\n");
  }
  bool saving() { return SysfsPower(tree_.root()).saving(); }

  tests::TemporaryTree tree_;
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
  tree_.write("class/power_supply/hidpp_battery_0/scope", "Device\n");
  EXPECT_FALSE(saving());
}

TEST_F(SysfsPowerTest, a_power_saving_profile_is_seen_where_it_is_written) {
  tree_.write("firmware/acpi/platform_profile", "balanced\n");
  EXPECT_FALSE(saving());
  tree_.write("firmware/acpi/platform_profile", "low-power\n");
  EXPECT_TRUE(saving());
  tree_.write("firmware/acpi/platform_profile", "performance\n");
  preference(0, "power");
  preference(1, "power");
  EXPECT_TRUE(saving());
  preference(0, "balance_power");
  preference(1, "balance_power");
  EXPECT_FALSE(saving());
}

TEST_F(SysfsPowerTest, cpus_of_which_some_save_are_no_profile) {
  preference(0, "balance_performance");
  preference(1, "power");
  EXPECT_FALSE(saving());
  preference(0, "power");
  preference(1, "balance_performance");
  EXPECT_FALSE(saving());
}

TEST_F(SysfsPowerTest, cpus_without_a_preference_say_nothing) {
  tree_.write("devices/system/cpu/cpufreq/policy0/scaling_driver", "acpi-cpufreq\n");
  EXPECT_FALSE(saving());
  preference(1, "power");
  EXPECT_TRUE(saving());
}

TEST_F(SysfsPowerTest, garbage_is_no_reason_to_save) {
  supply("BAT0", "Battery", "status", std::string(100000, 'x'));
  tree_.write("firmware/acpi/platform_profile", std::string("\0low-power", 10));
  EXPECT_FALSE(saving());
}

}  // namespace
}  // namespace apusched::platform
