// SPDX-License-Identifier: MIT
#include "core/types.hpp"

#include <gtest/gtest.h>

#include "core/lever.hpp"

namespace apusched::core {
namespace {

TEST(Nice, accepts_the_kernels_range_and_nothing_else) {
  EXPECT_TRUE(Nice::make(-20));
  EXPECT_TRUE(Nice::make(19));
  EXPECT_FALSE(Nice::make(-21));
  EXPECT_FALSE(Nice::make(20));
  EXPECT_FALSE(Nice::parse("5abc"));
  EXPECT_FALSE(Nice::parse(" 5"));
  EXPECT_FALSE(Nice::parse(""));
  EXPECT_EQ(Nice::parse("-10"), Nice::of<-10>());
}

TEST(ThreadValues, are_read_back_as_they_were_written) {
  for (const auto policy : {SchedulingPolicy::idle, SchedulingPolicy::batch,
                            SchedulingPolicy::normal, SchedulingPolicy::other})
    EXPECT_EQ(parse_lever_value(LeverKind::scheduling, to_string(policy)), LeverValue(policy));
  EXPECT_FALSE(parse_lever_value(LeverKind::scheduling, "fifo"));
  for (const IoPriority io : {IoPriority{}, IoPriority{IoClass::best_effort, 7},
                              IoPriority{IoClass::real_time, 8191}, IoPriority{IoClass::idle, 0}})
    EXPECT_EQ(parse_lever_value(LeverKind::io_class, to_string(io)), LeverValue(io));
  for (const auto* text : {"", "idle", "idle/", "idle/-1", "idle/8192", "none/4", "slow/1"})
    EXPECT_FALSE(parse_lever_value(LeverKind::io_class, text)) << text;
}

TEST(ThreadValues, timer_slack_is_a_number_of_nanoseconds) {
  for (const std::int64_t slack : {std::int64_t{0}, std::int64_t{50000}, TimerSlack::kMax})
    EXPECT_EQ(parse_lever_value(LeverKind::timer_slack, std::to_string(slack)),
              LeverValue(*TimerSlack::make(slack)));
  for (const auto* text : {"", "-1", "1 ", "9223372036854775808", "soon"})
    EXPECT_FALSE(parse_lever_value(LeverKind::timer_slack, text)) << text;
  EXPECT_TRUE(favours_more(*TimerSlack::make(1), *TimerSlack::make(50000)));
  EXPECT_EQ(parse_lever_kind("timer_slack"), LeverKind::timer_slack);
}

TEST(Weight, unset_acts_as_the_kernels_default) {
  EXPECT_FALSE(Weight().is_set());
  EXPECT_EQ(Weight().effective(), 100U);
  EXPECT_FALSE(Weight::make(0));
  EXPECT_FALSE(Weight::make(10001));
}

TEST(PerformanceLevel, reads_back_every_word_the_kernel_knows) {
  for (const auto* word : {"auto", "low", "high", "manual", "profile_standard", "profile_min_sclk",
                           "profile_min_mclk", "profile_peak", "perf_determinism"}) {
    const auto level = parse_performance_level(std::string(word) + "\n");
    ASSERT_TRUE(level) << word;
    EXPECT_EQ(to_string(*level), word);
  }
}

TEST(PerformanceLevel, garbage_is_no_value) {
  for (const std::string& text : {std::string(), std::string("hig"), std::string("high\n\n"),
                                  std::string("high\0", 5), std::string("HIGH"), std::string("5")})
    EXPECT_FALSE(parse_performance_level(text)) << text;
}

TEST(PciAddress, takes_only_the_full_lower_case_form) {
  EXPECT_TRUE(PciAddress::parse("0000:04:00.0"));
  for (const auto* text : {"04:00.0", "0000:04:00.00", "0000-04-00.0", "0000:0G:00.0", "../../etc",
                           "0000:0A:00.0", ""})
    EXPECT_FALSE(PciAddress::parse(text)) << text;
}

TEST(LeverValue, survives_the_trip_through_text) {
  const std::vector<std::pair<LeverKind, LeverValue>> values{
      {LeverKind::nice, Nice::of<-10>()},
      {LeverKind::cpu_weight, *Weight::make(500)},
      {LeverKind::io_weight, Weight()},
      {LeverKind::performance_level, PerformanceLevel::profile_peak}};
  for (const auto& [kind, value] : values)
    EXPECT_EQ(parse_lever_value(kind, to_string(value)), value);
  EXPECT_FALSE(parse_lever_value(LeverKind::cpu_weight, "0"));
  EXPECT_FALSE(parse_lever_value(LeverKind::performance_level, "turbo"));
}

TEST(LeverValue, favours_lower_nice_higher_weight_and_higher_clocks) {
  EXPECT_TRUE(favours_more(Nice::of<-10>(), Nice::of<5>()));
  EXPECT_TRUE(favours_more(*Weight::make(500), Weight()));
  EXPECT_TRUE(favours_more(PerformanceLevel::high, PerformanceLevel::automatic));
  EXPECT_FALSE(favours_more(Nice::of<-10>(), *Weight::make(500)));
}

}  // namespace
}  // namespace apusched::core
