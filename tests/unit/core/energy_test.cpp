// SPDX-License-Identifier: MIT
#include "core/energy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ledger.hpp"

namespace apusched::core {
namespace {

using ::testing::HasSubstr;
using enum EnergyWord;

TEST(EnergyPreference, is_one_of_the_kernels_words_or_a_number) {
  for (const auto* text : {"performance", "balance_performance", "default", "balance_power",
                           "power", "0", "96", "255"}) {
    const auto preference = EnergyPreference::parse(text);
    ASSERT_TRUE(preference) << text;
    EXPECT_EQ(preference->text(), text);
  }
  for (const std::string& text :
       {std::string(), std::string("Power"), std::string("power\n"), std::string("256"),
        std::string("-1"), std::string("power\0", 6), std::string("dynamic(profile:power)"),
        std::string("custom"), std::string(100000, '1')})
    EXPECT_FALSE(EnergyPreference::parse(text)) << text.substr(0, 40);
}

TEST(EnergyPreference, words_and_numbers_are_on_one_scale) {
  const EnergyPreference number = *EnergyPreference::parse("200");
  EXPECT_TRUE(EnergyPreference(power).saves_more_than(number));
  EXPECT_TRUE(number.saves_more_than(balance_power));
  EXPECT_TRUE(EnergyPreference(balance_power).saves_more_than(balance_performance));
  EXPECT_TRUE(EnergyPreference(balance_performance).saves_more_than(performance));
  EXPECT_FALSE(EnergyPreference(by_driver).saves_more_than(balance_performance));
}

TEST(EnergyPreference, that_saves_more_is_the_stronger_wish) {
  Ledger ledger;
  const ResourceKey key{LeverKind::energy_preference, "policy3"};
  const LeverValue original = EnergyPreference(balance_performance);
  ledger.hold(key, {RegistrationId::of<1>(), EnergyPreference(power)}, original);
  ledger.hold(key, {RegistrationId::of<2>(), EnergyPreference(balance_power)}, original);
  EXPECT_EQ(Ledger::wanted(*ledger.find(key)), LeverValue(EnergyPreference(power)));
  ledger.release(key, RegistrationId::of<1>());
  EXPECT_EQ(Ledger::wanted(*ledger.find(key)), LeverValue(EnergyPreference(balance_power)));
  ledger.release(key, RegistrationId::of<2>());
  EXPECT_EQ(Ledger::wanted(*ledger.find(key)), original);
}

TEST(EnergyPreference, survives_the_trip_through_text) {
  EXPECT_EQ(parse_lever_kind("energy_preference"), LeverKind::energy_preference);
  for (const auto* text : {"balance_performance", "255"}) {
    const auto value = parse_lever_value(LeverKind::energy_preference, text);
    ASSERT_TRUE(value) << text;
    EXPECT_EQ(to_string(*value), text);
  }
  EXPECT_FALSE(parse_lever_value(LeverKind::energy_preference, "fast"));
}

TEST(CpuNumbers, are_read_as_cpufreq_writes_them) {
  EXPECT_EQ(parse_cpu_numbers("3\n"), CpuSet().set(3));
  EXPECT_EQ(parse_cpu_numbers("0 8 1023\n"), CpuSet().set(0).set(8).set(1023));
  for (const std::string& text : {std::string(), std::string("\n"), std::string("1024\n"),
                                  std::string("-1\n"), std::string("0-3\n"), std::string("1 two"),
                                  std::string("\0", 1), std::string("99999999999999999999")})
    EXPECT_FALSE(parse_cpu_numbers(text)) << text;
}

TEST(CpuNumbers, are_shown_as_a_list) {
  EXPECT_EQ(cpu_list({}), "");
  EXPECT_EQ(cpu_list(CpuSet().set(5)), "5");
  EXPECT_EQ(cpu_list(CpuSet().set(0).set(1).set(2).set(8).set(1022).set(1023)), "0-2,8,1022-1023");
}

/// Four CPUs with a policy each; background work may run on 2 and 3, the others on 0 and 1.
class LowerableTest : public ::testing::Test {
 protected:
  LowerableTest() {
    for (std::size_t cpu = 0; cpu < 4; ++cpu)
      policies_.push_back({"policy" + std::to_string(cpu),
                           CpuSet().set(cpu),
                           balance_performance,
                           {performance, balance_performance, balance_power, power}});
    use_.others.set(0).set(1);
    use_.background.set(2).set(3);
    use_.working = use_.background;
  }
  Lowerable look() { return lowerable(policies_, use_, power, ours_, left_alone_); }
  std::string names() {
    std::string text;
    for (const auto& [name, cpus] : look().policies) text += name + " ";
    return text;
  }
  std::string why() {
    const auto seen = look();
    EXPECT_TRUE(seen.policies.empty());
    return seen.why_none;
  }

  std::vector<EnergyPolicy> policies_;
  CpuUse use_;
  std::set<std::string> ours_;
  std::map<std::string, std::string> left_alone_;
};

TEST_F(LowerableTest, cpus_with_background_work_only_are) {
  EXPECT_EQ(names(), "policy2 policy3 ");
  EXPECT_EQ(look().why_none, "");
}

TEST_F(LowerableTest, a_policy_is_only_with_all_of_its_cpus) {
  policies_[2].cpus.set(1);
  EXPECT_EQ(names(), "policy3 ");
  policies_[3].cpus.set(9);
  EXPECT_THAT(why(), HasSubstr("AllowedCPUs="));
}

TEST_F(LowerableTest, where_all_processes_may_run_everywhere_none_is_and_it_says_what_to_do) {
  use_.others.set();
  use_.background.set();
  EXPECT_THAT(why(), HasSubstr("no CPU runs background work only"));
  EXPECT_THAT(why(), HasSubstr("AllowedCPUs="));
}

TEST_F(LowerableTest, where_no_background_work_is_done_there_is_nothing_to_gain) {
  use_.working.reset();
  EXPECT_THAT(why(), HasSubstr("no background process works"));
}

TEST_F(LowerableTest, a_cpu_that_saves_as_much_is_not_unless_we_have_made_it) {
  policies_[2].preference = power;
  policies_[3].preference = *EnergyPreference::parse("255");
  EXPECT_THAT(why(), HasSubstr("saves as much energy already"));
  ours_ = {"policy2"};
  EXPECT_EQ(names(), "policy2 ");
}

TEST_F(LowerableTest, not_all_cpus_of_the_machine_come_to_save) {
  policies_[0].preference = policies_[1].preference = power;
  EXPECT_THAT(why(), HasSubstr("all other CPUs save as much"));
  use_.others.reset();
  use_.background.set();
  policies_[0].preference = policies_[1].preference = balance_performance;
  EXPECT_THAT(why(), HasSubstr("all other CPUs save as much"));
}

TEST_F(LowerableTest, a_governor_that_takes_no_other_preference_is_named) {
  policies_[2].choices = policies_[3].choices = {performance};
  EXPECT_THAT(why(), HasSubstr("governor performance"));
}

TEST_F(LowerableTest, a_driver_that_lists_no_choices_is_asked) {
  policies_[2].choices.clear();
  policies_[3].choices.clear();
  EXPECT_EQ(names(), "policy2 policy3 ");
}

TEST_F(LowerableTest, what_somebody_else_sets_is_left_alone) {
  left_alone_ = {{"policy3", "somebody set it to performance"}};
  EXPECT_EQ(names(), "policy2 ");
  left_alone_.emplace("policy2", "refused");
  EXPECT_EQ(why(), "policy3: somebody set it to performance");
}

TEST(EnergySaving, off_asks_for_nothing) {
  EXPECT_FALSE(preference_of(EnergySaving::off));
  for (const auto saving : {EnergySaving::balance_power, EnergySaving::power})
    EXPECT_EQ(preference_of(saving)->text(), to_string(saving));
}

}  // namespace
}  // namespace apusched::core
