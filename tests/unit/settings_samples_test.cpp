// SPDX-License-Identifier: MIT
// Walks config/: the shipped file, and the samples that users start from or stumble over.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "settings/settings.hpp"

namespace apusched::settings {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<fs::path> samples(const char* folder) {
  std::vector<fs::path> found;
  for (const auto& entry :
       fs::directory_iterator(fs::path(APUSCHED_CONFIG_DIR) / "samples" / folder))
    if (entry.path().extension() == ".yaml") found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

TEST(ShippedConfiguration, says_exactly_what_runs_without_it) {
  const auto config = load(std::string(APUSCHED_CONFIG_DIR) + "/apuschedd.yaml");
  ASSERT_TRUE(config) << to_string(config.error().front());
  EXPECT_EQ(*config, core::default_config());
}

TEST(ShippedConfiguration, names_every_setting) {
  const std::string shipped = text_of(fs::path(APUSCHED_CONFIG_DIR) / "apuschedd.yaml");
  std::istringstream lines(to_yaml(core::default_config()));
  for (std::string line; std::getline(lines, line);) {
    const std::string key = line.substr(0, line.find(':') + 1);
    EXPECT_NE(shipped.find(key), std::string::npos) << key;
  }
}

TEST(Samples, every_good_one_is_accepted_and_survives_a_round_trip) {
  const auto files = samples("good");
  ASSERT_GE(files.size(), 6U);
  for (const auto& file : files) {
    const auto config = load(file.string());
    ASSERT_TRUE(config) << to_string(config.error().front());
    const auto again = parse(to_yaml(*config), "again");
    ASSERT_TRUE(again) << to_string(again.error().front());
    EXPECT_EQ(*again, *config) << file;
  }
}

TEST(Samples, every_bad_one_is_refused_with_the_sentences_beside_it) {
  const auto files = samples("bad");
  ASSERT_GE(files.size(), 19U);
  for (const auto& file : files) {
    const auto config = parse(text_of(file), file.filename().string());
    ASSERT_FALSE(config) << file;
    std::string sentences;
    for (const auto& error : config.error()) sentences += to_string(error) + "\n";
    fs::path expected = file;
    expected.replace_extension(".expected");
    EXPECT_EQ(sentences, text_of(expected)) << file;
  }
}

}  // namespace
}  // namespace apusched::settings
