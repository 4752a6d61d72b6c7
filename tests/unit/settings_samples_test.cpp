// SPDX-License-Identifier: MIT
// Walks config/ and the man page: the shipped file, the samples that users start from or stumble
// over, and what apuschedd.yaml(5) says of each setting.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "settings/schema.hpp"
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

struct Setting {
  std::string key;  ///< below "profiles." of any profile
  std::string fallback;
  std::string range;
};

/// Every setting of the schema (a Visitor of it).
class Settings {
 public:
  std::vector<Setting> found;

  void integer(const char* name, std::uint32_t value, std::int64_t min, std::int64_t max) {
    add(name, std::to_string(value), range(min, max));
  }
  void duration(const char* name, milliseconds value, milliseconds min, milliseconds max) {
    add(name, std::to_string(value.count()), range(min.count(), max.count()));
  }
  void boolean(const char* name, bool value) { add(name, value ? "true" : "false", ""); }
  void account(const char* name, const std::string& value) { add(name, value, ""); }
  void nice(const char* name, core::Nice value) {
    add(name, to_string(value), range(core::Nice::kMin, core::Nice::kMax));
  }
  void optional_nice(const char* name, std::optional<core::Nice>) {
    add(name, "", range(core::Nice::kMin, core::Nice::kMax));
  }
  void optional_weight(const char* name, std::optional<core::Weight>) {
    add(name, "", range(core::Weight::kMin, core::Weight::kMax));
  }
  template <typename Number>
  void optional_integer(const char* name, std::optional<Number> value) {
    const std::string fallback = value ? std::to_string(value->value()) : "null";
    add(name, fallback, range(Number::kMin, Number::kMax));
  }
  template <typename Word, std::size_t N>
  void word(const char* name, Word value, const std::array<Word, N>& /*allowed*/) {
    add(name, std::string(to_string(value)), "");
  }
  template <typename Word, std::size_t N>
  void optional_word(const char* name, std::optional<Word>, const std::array<Word, N>&) {
    add(name, "", "");
  }
  template <typename Section>
  void section(const std::string& name, Section& section) {
    prefix_ = name + ".";
    describe(*this, section);
  }
  void profiles(const std::string& name, std::map<std::string, core::Profile>&) {
    core::Profile untouched;
    section(name, untouched);
  }

 private:
  static std::string range(std::int64_t min, std::int64_t max) {
    return std::to_string(min) + ".." + std::to_string(max);
  }
  void add(const char* name, std::string fallback, std::string range) {
    found.push_back({prefix_ + name, std::move(fallback), std::move(range)});
  }
  std::string prefix_;
};

std::vector<Setting> every_setting() {
  auto config = core::default_config();
  Settings settings;
  describe(settings, config);
  return settings.found;
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

TEST(Samples, every_setting_is_refused_in_a_bad_one) {
  const std::regex key_of(R"(^[^:]+:\d+:\d+: ([^:]+): expected )");
  const std::regex profile(R"(^profiles\.[^.]+\.)");
  std::set<std::string> refused;
  for (const auto& file : samples("bad")) {
    fs::path expected = file;
    std::istringstream lines(text_of(expected.replace_extension(".expected")));
    std::smatch match;
    for (std::string line; std::getline(lines, line);)
      if (std::regex_search(line, match, key_of))
        refused.insert(std::regex_replace(match[1].str(), profile, "profiles."));
  }
  for (const auto& setting : every_setting())
    EXPECT_TRUE(refused.contains(setting.key)) << setting.key;
}

/// Lines of apuschedd.yaml(5) by their first word.
std::map<std::string, std::string> described() {
  std::map<std::string, std::string> lines;
  std::istringstream page(text_of(fs::path(APUSCHED_MAN_DIR) / "apuschedd.yaml.5"));
  for (std::string line; std::getline(page, line);) {
    std::erase(line, '\\');  // "\-" is a minus
    lines.emplace(line.substr(0, line.find(' ')), line);
  }
  return lines;
}

TEST(ManPage, has_every_setting_with_its_default_and_its_range) {
  const auto lines = described();
  const std::string in_profile = "profiles.";
  for (const auto& setting : every_setting()) {
    const bool of_profile = setting.key.starts_with(in_profile);
    const auto line = lines.find(of_profile ? setting.key.substr(in_profile.size()) : setting.key);
    ASSERT_NE(line, lines.end()) << setting.key;
    const std::string text = line->second + " ";
    EXPECT_NE(text.find(" " + setting.range), std::string::npos) << setting.range << ": " << text;
    if (of_profile) continue;  // what is left out there is left alone
    EXPECT_NE(text.find(" " + setting.fallback + " "), std::string::npos)
        << setting.fallback << ": " << text;
  }
}

}  // namespace
}  // namespace apusched::settings
