// SPDX-License-Identifier: MIT
#include "settings/reader.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

namespace apusched::settings {
namespace {

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

bool is_plain(const Value& value) {
  return value.kind == Value::Kind::scalar && !value.quoted;
}

/// useradd(8): what Debian accepts without --force-badname.
bool is_account_name(std::string_view text) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= 32 && std::ranges::all_of(text, good) &&
         (std::isalpha(static_cast<unsigned char>(text.front())) != 0 || text.front() == '_');
}

bool is_profile_name(std::string_view text) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, good);
}

}  // namespace

void ErrorList::add(Position position, std::string key, std::string expected, std::string got) {
  errors_.push_back(
      {file_, position.line, position.column, std::move(key), std::move(expected), std::move(got)});
}

std::vector<SettingsError> ErrorList::take() {
  std::ranges::stable_sort(
      errors_, {}, [](const SettingsError& error) { return std::pair(error.line, error.column); });
  return std::move(errors_);
}

MapReader::MapReader(const Value& map, std::string path, ErrorList& errors)
    : map_(map), path_(std::move(path)), errors_(errors) {
  report_duplicates();
}

void MapReader::report_duplicates() {
  std::map<std::string, int> first_line;
  for (const auto& [key, value] : map_.entries) {
    if (key.kind != Value::Kind::scalar) continue;
    const auto [first, is_new] = first_line.emplace(key.text, key.position.line);
    if (is_new) continue;
    errors_.add(key.position, path_of(key.text), "this key once",
                "it again (first on line " + std::to_string(first->second) + ")");
  }
}

void MapReader::integer(std::string_view name, std::uint32_t& out, std::int64_t min,
                        std::int64_t max) {
  if (const auto value = number(name, min, max, false)) out = static_cast<std::uint32_t>(*value);
}

void MapReader::duration(std::string_view name, std::chrono::milliseconds& out,
                         std::chrono::milliseconds min, std::chrono::milliseconds max) {
  const auto value = number(name, min.count(), max.count(), false);
  if (value) out = std::chrono::milliseconds{*value};
}

void MapReader::boolean(std::string_view name, bool& out) {
  const Value* value = given(name);
  if (value == nullptr) return;
  if (is_plain(*value) && value->text == "true") {
    out = true;
  } else if (is_plain(*value) && value->text == "false") {
    out = false;
  } else {
    wrong(name, *value, "true or false");
  }
}

void MapReader::account(std::string_view name, std::string& out) {
  const Value* value = given(name);
  if (value == nullptr) return;
  if (value->kind != Value::Kind::scalar || !is_account_name(value->text) ||
      value->text == "root") {
    wrong(name, *value, "the name of an account other than root");
    return;
  }
  out = value->text;
}

void MapReader::nice(std::string_view name, core::Nice& out) {
  const auto value = number(name, core::Nice::kMin, core::Nice::kMax, false);
  if (value) out = core::Nice::make(*value).value_or(out);
}

void MapReader::optional_nice(std::string_view name, std::optional<core::Nice>& out) {
  if (is_null(name)) out.reset();
  const auto value = number(name, core::Nice::kMin, core::Nice::kMax, true);
  if (value) out = core::Nice::make(*value);
}

void MapReader::optional_weight(std::string_view name, std::optional<core::Weight>& out) {
  if (is_null(name)) out.reset();
  const auto value = number(name, core::Weight::kMin, core::Weight::kMax, true);
  if (value) out = core::Weight::make(*value);
}

void MapReader::profiles(std::string_view name, std::map<std::string, core::Profile>& out) {
  const Value* value = map_of(name);
  if (value == nullptr) return;
  MapReader list(*value, path_of(name), errors_);
  for (const auto& [key, body] : value->entries) {
    if (key.kind != Value::Kind::scalar || !is_profile_name(key.text)) {
      errors_.add(key.position, list.path_,
                  "a profile name of 1 to 64 letters, digits, '.', '_' and '-'", shown(key));
      continue;
    }
    core::Profile& profile = out[key.text];
    profile.name = key.text;
    list.section(key.text, profile);
  }
}

void MapReader::finish() {
  std::set<std::string> reported;
  for (const auto& [key, value] : map_.entries) {
    if (key.kind == Value::Kind::scalar && std::ranges::count(known_, key.text) > 0) continue;
    if (!reported.insert(key.text).second) continue;
    std::string got = "an unknown key";
    if (const auto hint = nearest(key.text, known_)) got += " (did you mean \"" + *hint + "\"?)";
    errors_.add(key.position, path_of(key.text), "one of " + join(known_), got);
  }
}

const Value* MapReader::given(std::string_view name) {
  known_.emplace_back(name);
  const Value* value = find(&map_, name);
  return value == nullptr || value->kind == Value::Kind::null ? nullptr : value;
}

const Value* MapReader::map_of(std::string_view name) {
  const Value* value = given(name);
  if (value == nullptr || value->kind == Value::Kind::map) return value;
  wrong(name, *value, "a section of keys and values");
  return nullptr;
}

bool MapReader::is_null(std::string_view name) const {
  const Value* value = find(&map_, name);
  return value != nullptr && value->kind == Value::Kind::null;
}

std::optional<std::int64_t> MapReader::number(std::string_view name, std::int64_t min,
                                              std::int64_t max, bool may_be_null) {
  const Value* value = given(name);
  if (value == nullptr) return std::nullopt;
  if (is_plain(*value)) {
    const auto parsed = core::parse_integer(value->text);
    if (parsed && *parsed >= min && *parsed <= max) return parsed;
  }
  wrong(name, *value,
        "a whole number from " + std::to_string(min) + " to " + std::to_string(max) +
            (may_be_null ? " or null" : ""));
  return std::nullopt;
}

std::optional<std::size_t> MapReader::choice(std::string_view name,
                                             const std::vector<std::string>& allowed,
                                             bool may_be_null) {
  const Value* value = given(name);
  if (value == nullptr) return std::nullopt;
  const auto found = std::ranges::find(allowed, value->text);
  if (value->kind == Value::Kind::scalar && found != allowed.end())
    return static_cast<std::size_t>(found - allowed.begin());
  wrong(name, *value, "one of " + join(allowed) + (may_be_null ? " or null" : ""));
  return std::nullopt;
}

std::string MapReader::path_of(std::string_view name) const {
  Value as_value;
  as_value.kind = Value::Kind::scalar;
  as_value.text = std::string(name);
  const std::string quoted = shown(as_value);
  const std::string last = quoted.substr(1, quoted.size() - 2);
  return path_.empty() ? last : path_ + "." + last;
}

void MapReader::wrong(std::string_view name, const Value& value, std::string expected) {
  errors_.add(value.position, path_of(name), std::move(expected), shown(value));
}

const Value* find(const Value* map, std::string_view name) {
  if (map == nullptr) return nullptr;
  for (const auto& [key, value] : map->entries)
    if (key.kind == Value::Kind::scalar && key.text == name) return &value;
  return nullptr;
}

std::string shown(const Value& value) {
  switch (value.kind) {
    case Value::Kind::null:
      return "nothing";
    case Value::Kind::sequence:
      return "a list";
    case Value::Kind::map:
      return "a section";
    case Value::Kind::scalar:
      break;
  }
  constexpr std::size_t kLongest = 40;
  std::string text = value.quoted ? "the text \"" : "\"";
  for (const char c : value.text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte < 0x20U || byte == 0x7fU ? '?' : c;
  }
  return text + (value.text.size() > kLongest ? "…\"" : "\"");
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  // bounds the work that a hostile key can ask for
  constexpr std::size_t kLongest = 64;
  if (word.empty() || word.size() > kLongest) return std::nullopt;
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (const auto& candidate : candidates) {
    std::vector<std::size_t> row(candidate.size() + 1);  // Levenshtein, one row at a time
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = i;
    for (std::size_t j = 0; j < word.size(); ++j) {
      std::size_t diagonal = row[0];
      row[0] = j + 1;
      for (std::size_t i = 1; i < row.size(); ++i) {
        const std::size_t substitute = diagonal + (candidate[i - 1] == word[j] ? 0U : 1U);
        diagonal = row[i];
        row[i] = std::min({row[i] + 1, row[i - 1] + 1, substitute});
      }
    }
    if (word.size() >= 3 && candidate.starts_with(word)) return candidate;  // "rate" for "rate_hz"
    const std::size_t allowed = std::max<std::size_t>(2, candidate.size() / 3);
    if (row.back() > allowed || (best && row.back() >= best_distance)) continue;
    best = candidate;
    best_distance = row.back();
  }
  return best;
}

}  // namespace apusched::settings
