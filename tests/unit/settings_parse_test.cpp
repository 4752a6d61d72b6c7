// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "settings/settings.hpp"

namespace apusched::settings {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

core::Config parsed(std::string_view text) {
  const auto config = parse(text, "f.yaml");
  EXPECT_TRUE(config) << (config ? "" : to_string(config.error().front()));
  return config.value_or(core::Config{});
}

std::vector<std::string> errors_of(std::string_view text) {
  std::vector<std::string> sentences;
  const auto config = parse(text, "f.yaml");
  if (config) return {"(accepted)"};
  for (const auto& error : config.error()) sentences.push_back(to_string(error));
  return sentences;
}

TEST(Settings, an_empty_text_means_the_defaults) {
  EXPECT_EQ(parsed(""), core::default_config());
}

TEST(Settings, a_missing_key_keeps_its_default) {
  const auto config = parsed("probe:\n  rate_hz: 50\n");
  EXPECT_EQ(config.probe.rate_hz, 50U);
  EXPECT_EQ(config.probe.window_samples, core::default_config().probe.window_samples);
  EXPECT_EQ(config.limits, core::default_config().limits);
}

TEST(Settings, a_new_profile_stands_beside_the_built_in_ones) {
  const auto config = parsed("profiles:\n  mine:\n    class: batch\n    nice: 3\n");
  ASSERT_EQ(config.profiles.size(), core::default_config().profiles.size() + 1);
  const auto& mine = config.profiles.at("mine");
  EXPECT_EQ(mine.name, "mine");
  EXPECT_EQ(mine.work_class, core::WorkClass::batch);
  EXPECT_EQ(mine.nice, core::Nice::of<3>());
  EXPECT_FALSE(mine.cpu_weight);
  EXPECT_FALSE(mine.performance_level);
}

TEST(Settings, a_profile_of_a_built_in_name_changes_only_the_keys_it_names) {
  const auto config = parsed("profiles:\n  llm-interactive:\n    nice: -3\n    io_weight: null\n");
  auto expected = core::default_config().profiles.at("llm-interactive");
  expected.nice = core::Nice::of<-3>();
  expected.io_weight.reset();
  EXPECT_EQ(config.profiles.at("llm-interactive"), expected);
}

TEST(Settings, durations_are_read_in_milliseconds) {
  const auto config = parsed("limits:\n  scan_interval_ms: 750\n");
  EXPECT_EQ(config.limits.scan_interval, milliseconds{750});
}

TEST(Settings, the_ends_of_a_range_are_accepted) {
  EXPECT_EQ(parsed("probe: {rate_hz: 1}").probe.rate_hz, 1U);
  EXPECT_EQ(parsed("probe: {rate_hz: 200}").probe.rate_hz, 200U);
}

TEST(Settings, an_error_names_file_line_column_key_and_what_was_expected) {
  EXPECT_THAT(errors_of("probe:\n  rate_hz: 0\n"),
              ElementsAre("f.yaml:2:12: probe.rate_hz: expected a whole number from 1 to 200, "
                          "got \"0\""));
}

TEST(Settings, all_errors_are_told_at_once_in_the_order_of_the_file) {
  EXPECT_THAT(
      errors_of("gpu: {enabled: 1}\nprobe: {rate_hz: x}\nlimits: {nice_floor: 99}\n"),
      ElementsAre(HasSubstr("f.yaml:1:16: gpu.enabled"), HasSubstr("f.yaml:2:18: probe.rate_hz"),
                  HasSubstr("f.yaml:3:22: limits.nice_floor")));
}

TEST(Settings, an_unknown_key_gets_the_nearest_known_one_as_a_hint) {
  EXPECT_THAT(errors_of("probe:\n  rate: 5\n"),
              ElementsAre(AllOf(HasSubstr("f.yaml:2:3: probe.rate: expected one of enabled,"),
                                HasSubstr("got an unknown key (did you mean \"rate_hz\"?)"))));
  EXPECT_THAT(errors_of("limits:\n  scan_interval: 5\n"),
              ElementsAre(HasSubstr("did you mean \"scan_interval_ms\"?")));
  EXPECT_THAT(errors_of("colours: {}\n"), ElementsAre(testing::Not(HasSubstr("did you mean"))));
}

TEST(Settings, a_key_given_twice_is_an_error_that_names_the_first_line) {
  EXPECT_THAT(errors_of("probe:\n  rate_hz: 5\n  rate_hz: 5\n"),
              ElementsAre("f.yaml:3:3: probe.rate_hz: expected this key once, got it again (first "
                          "on line 2)"));
}

TEST(Settings, nice_below_the_floor_is_refused_for_threads_and_autogroups) {
  EXPECT_THAT(errors_of("limits: {nice_floor: -12}\n"
                        "profiles:\n  mine: {nice: -13, autogroup_nice: -14}\n"),
              ElementsAre(HasSubstr("profiles.mine.nice: expected at least limits.nice_floor, -12"),
                          HasSubstr("profiles.mine.autogroup_nice")));
}

TEST(Settings, a_floor_above_a_built_in_profile_names_that_profile) {
  EXPECT_THAT(errors_of("limits:\n  nice_floor: -5\n"),
              ElementsAre(HasSubstr("f.yaml:2:15: limits.nice_floor: expected at most -10, which "
                                    "profiles.llm-interactive.nice asks for"),
                          HasSubstr("profiles.llm-interactive.autogroup_nice")));
}

TEST(Settings, a_level_that_only_a_person_chooses_is_no_profile_setting) {
  EXPECT_THAT(errors_of("profiles: {p: {performance_level: manual}}"),
              ElementsAre(HasSubstr("got \"manual\"")));
}

TEST(Settings, the_helper_never_runs_as_root) {
  EXPECT_THAT(errors_of("gpu: {helper_user: root}"), ElementsAre(HasSubstr("other than root")));
}

TEST(Settings, a_huge_text_is_refused_by_its_size) {
  EXPECT_THAT(errors_of(std::string(kMaxFileBytes + 1, '#')),
              ElementsAre(HasSubstr("file: expected 1 MiB at most")));
}

TEST(Settings, control_characters_never_reach_a_message) {
  const auto errors = errors_of("profiles: {p: {\"nice\\e[2J\": 5}}");
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors.front().find('\x1b'), std::string::npos);
}

TEST(Settings, what_is_written_reads_back_equal) {
  auto config = core::default_config();
  EXPECT_EQ(parsed(to_yaml(config)), config);
  config.limits.nice_floor = core::Nice::of<-20>();
  config.probe.enabled = false;
  config.gpu.helper_user = "null";  // must not come back as YAML's null
  config.profiles["llm-interactive"].cpu_weight.reset();
  core::Profile odd;
  odd.name = "007.e1";
  odd.performance_level = core::PerformanceLevel::profile_min_mclk;
  config.profiles[odd.name] = odd;
  EXPECT_EQ(parsed(to_yaml(config)), config);
}

TEST(Settings, a_file_that_is_not_there_is_an_error_with_its_name) {
  const auto config = load("/nonexistent/apuschedd.yaml");
  ASSERT_FALSE(config);
  EXPECT_EQ(to_string(config.error().front()),
            "/nonexistent/apuschedd.yaml:1:1: file: expected a readable file, got No such file or "
            "directory");
}

TEST(Settings, a_directory_or_device_is_not_read) {
  EXPECT_FALSE(load("/"));
  const auto device = load("/dev/zero");
  ASSERT_FALSE(device);
  EXPECT_THAT(to_string(device.error().front()), HasSubstr("expected a regular file"));
}

}  // namespace
}  // namespace apusched::settings
