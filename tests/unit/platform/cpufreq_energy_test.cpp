// SPDX-License-Identifier: MIT
#include "platform/cpufreq_energy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "unit/temporary_tree.hpp"

namespace apusched::platform {
namespace {

using core::EnergyWord;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kFolder = "devices/system/cpu/cpufreq/";

class CpufreqEnergyTest : public ::testing::Test {
 protected:
  void policy(const std::string& name, const std::string& cpus, const std::string& preference) {
    write(name, "affected_cpus", cpus + "\n");
    write(name, "scaling_driver", "amd-pstate-epp\n");
    write(name, "energy_performance_available_preferences",
          "default performance balance_performance balance_power power \n");
    write(name, "energy_performance_preference", preference + "\n");
  }
  void write(const std::string& name, const std::string& file, const std::string& text) {
    tree_.write(kFolder + name + "/" + file, text);
  }
  /// The tree's files keep what was longer before; the kernel's do not.
  std::string line(const std::string& name) {
    const auto text = tree_.read(kFolder + name + "/energy_performance_preference");
    return text.substr(0, text.find('\n'));
  }
  std::vector<std::string> names() {
    std::vector<std::string> result;
    const auto found = energy_.policies();
    if (!found) return {core::to_sentence(found.error())};
    for (const auto& policy : *found) result.push_back(policy.name);
    return result;
  }

  tests::TemporaryTree tree_;
  CpufreqEnergy energy_{tree_.root()};
};

TEST_F(CpufreqEnergyTest, shows_each_policy_with_its_cpus_and_choices) {
  policy("policy0", "0 1", "balance_performance");
  policy("policy10", "10", "96");
  policy("policy2", "2", "power");
  const auto found = energy_.policies();
  ASSERT_TRUE(found);
  EXPECT_THAT(names(), ElementsAre("policy0", "policy2", "policy10"));
  EXPECT_EQ(found->front().cpus, core::CpuSet().set(0).set(1));
  EXPECT_EQ(found->front().preference, EnergyWord::balance_performance);
  EXPECT_EQ(found->front().choices.size(), 5U);
  EXPECT_EQ(found->back().preference.text(), "96");
}

TEST_F(CpufreqEnergyTest, writes_a_word_that_reads_back) {
  policy("policy3", "3", "balance_performance");
  ASSERT_TRUE(energy_.write("policy3", EnergyWord::power));
  EXPECT_EQ(line("policy3"), "power");
  EXPECT_EQ(energy_.read("policy3"), core::EnergyPreference(EnergyWord::power));
}

TEST_F(CpufreqEnergyTest, without_active_amd_pstate_it_says_what_to_do) {
  EXPECT_THAT(names().front(), HasSubstr("does not control CPU frequencies"));
  write("policy0", "affected_cpus", "0\n");
  write("policy0", "scaling_driver", "amd-pstate\n");
  EXPECT_THAT(names().front(), HasSubstr("driver amd-pstate has no energy"));
  EXPECT_THAT(names().front(), HasSubstr("amd_pstate=active"));
  write("policy0", "scaling_driver", "\x1b[31m\n");
  EXPECT_EQ(names().front().find('\x1b'), std::string::npos);
}

TEST_F(CpufreqEnergyTest, a_policy_that_is_gone_is_told_apart_from_one_that_cannot_be_read) {
  EXPECT_EQ(energy_.read("policy0").error().code, core::ErrorCode::gone);
  EXPECT_EQ(energy_.write("policy0", EnergyWord::power).error().code, core::ErrorCode::gone);
  policy("policy0", "0", "dynamic(profile:power)");
  EXPECT_EQ(energy_.read("policy0").error().code, core::ErrorCode::unsupported);
  // A directory in its place: reading fails, as of a policy whose CPUs are offline.
  std::filesystem::create_directories(
      tree_.path(std::string(kFolder) + "policy1/energy_performance_preference"));
  EXPECT_EQ(energy_.read("policy1").error().code, core::ErrorCode::failed);
}

TEST_F(CpufreqEnergyTest, a_policy_without_cpus_online_is_left_out) {
  policy("policy0", "0", "power");
  policy("policy1", "", "power");
  EXPECT_THAT(names(), ElementsAre("policy0"));
}

TEST_F(CpufreqEnergyTest, hostile_text_is_no_policy_and_no_path) {
  policy("policy0", "0", "power");
  policy("policy1", "1 many", "power");
  policy("policy2", "2048", "power");
  policy("policy3", "3", std::string(100000, 'p'));
  policy("policy4", "4", std::string("power\0", 6));
  policy("policy05", "5", "power");
  policy("policy1024", "6", "power");
  policy("policy-1", "7", "power");
  policy("policy99999999999999999999", "8", "power");
  EXPECT_THAT(names(), ElementsAre("policy0"));
  for (const auto* name : {"", "policy", "policy0/../policy1", "../cpufreq/policy0", "policy05"}) {
    EXPECT_EQ(energy_.read(name).error().code, core::ErrorCode::invalid_input) << name;
    EXPECT_EQ(energy_.write(name, EnergyWord::power).error().code, core::ErrorCode::invalid_input);
  }
}

TEST_F(CpufreqEnergyTest, choices_that_are_no_preferences_are_left_out) {
  policy("policy0", "0", "power");
  write("policy0", "energy_performance_available_preferences",
        "custom  performance\x1b dynamic power");
  const auto found = energy_.policies();
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->front().takes(EnergyWord::power));
  EXPECT_FALSE(found->front().takes(EnergyWord::performance));
}

}  // namespace
}  // namespace apusched::platform
