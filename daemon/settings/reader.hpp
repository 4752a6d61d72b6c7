// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/config.hpp"
#include "settings/document.hpp"
#include "settings/schema.hpp"
#include "settings/settings.hpp"

namespace apusched::settings {

/// Errors of one file, in the order found.
class ErrorList {
 public:
  explicit ErrorList(std::string file) : file_(std::move(file)) {}
  void add(Position position, std::string key, std::string expected, std::string got);
  [[nodiscard]] bool empty() const { return errors_.empty(); }
  /// Sorted by position.
  [[nodiscard]] std::vector<SettingsError> take();

 private:
  std::string file_;
  std::vector<SettingsError> errors_;
};

/// Reads one map of the document into settings (a Visitor of schema.hpp). A wrong value leaves
/// the setting as it was and adds an error. Call `finish` last: it reports unknown keys.
class MapReader {
 public:
  MapReader(const Value& map, std::string path, ErrorList& errors);

  void integer(std::string_view name, std::uint32_t& out, std::int64_t min, std::int64_t max);
  void duration(std::string_view name, std::chrono::milliseconds& out,
                std::chrono::milliseconds min, std::chrono::milliseconds max);
  void boolean(std::string_view name, bool& out);
  /// A user's or group's name; never root, whom the setting is to keep out.
  void account(std::string_view name, std::string& out);
  void nice(std::string_view name, core::Nice& out);
  void optional_nice(std::string_view name, std::optional<core::Nice>& out);
  void optional_weight(std::string_view name, std::optional<core::Weight>& out);
  /// A core::Bounded, in its own range.
  template <typename Number>
  void optional_integer(std::string_view name, std::optional<Number>& out) {
    if (is_null(name)) out.reset();
    if (const auto value = number(name, Number::kMin, Number::kMax, true))
      out = Number::make(*value);
  }
  template <typename Word, std::size_t N>
  void word(std::string_view name, Word& out, const std::array<Word, N>& allowed) {
    if (const auto index = choice(name, spelled(allowed), false)) out = allowed[*index];
  }
  template <typename Word, std::size_t N>
  void optional_word(std::string_view name, std::optional<Word>& out,
                     const std::array<Word, N>& allowed) {
    if (is_null(name)) out.reset();
    if (const auto index = choice(name, spelled(allowed), true)) out = allowed[*index];
  }
  template <typename Section>
  void section(std::string_view name, Section& out) {
    const Value* value = map_of(name);
    if (value == nullptr) return;
    MapReader reader(*value, path_of(name), errors_);
    describe(reader, out);
    reader.finish();
  }
  void profiles(std::string_view name, std::map<std::string, core::Profile>& out);

  void finish();

 private:
  template <typename Word, std::size_t N>
  static std::vector<std::string> spelled(const std::array<Word, N>& words) {
    std::vector<std::string> texts;
    for (const Word word : words) texts.emplace_back(to_string(word));
    return texts;
  }
  /// The value of a key that may be left out; null counts as left out.
  [[nodiscard]] const Value* given(std::string_view name);
  [[nodiscard]] const Value* map_of(std::string_view name);
  [[nodiscard]] bool is_null(std::string_view name) const;
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view name, std::int64_t min,
                                                   std::int64_t max, bool may_be_null);
  [[nodiscard]] std::optional<std::size_t> choice(std::string_view name,
                                                  const std::vector<std::string>& allowed,
                                                  bool may_be_null);
  [[nodiscard]] std::string path_of(std::string_view name) const;
  void report_duplicates();
  void wrong(std::string_view name, const Value& value, std::string expected);

  const Value& map_;
  std::string path_;
  ErrorList& errors_;
  std::vector<std::string> known_;
};

/// The value of a key in a map (the first, should it stand twice). A null map has no keys.
[[nodiscard]] const Value* find(const Value* map, std::string_view name);
/// What a reader sees of a value in an error message: short, printable, in quotes.
[[nodiscard]] std::string shown(const Value& value);
/// The candidate that the word was most likely meant to be; nothing when none is close.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word,
                                                 std::span<const std::string> candidates);

}  // namespace apusched::settings
