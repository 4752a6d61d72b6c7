// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "core/config.hpp"

namespace apusched::settings {

/// One thing wrong with a configuration. Line and column count from 1, in characters.
struct SettingsError {
  std::string file;
  int line = 1;
  int column = 1;
  std::string key;  ///< dotted path, e.g. "profiles.background.nice"; "syntax" or "file" otherwise
  std::string expected;
  std::string got;

  bool operator==(const SettingsError&) const = default;
};

/// "file:line:column: key: expected …, got …"
[[nodiscard]] std::string to_string(const SettingsError& error);

using Parsed = tl::expected<core::Config, std::vector<SettingsError>>;

/// A larger file is refused unread: no sensible configuration comes near it.
inline constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20U;

/// Sections and keys that are missing keep the values of core::default_config(). A profile of a
/// built-in name changes that profile key by key. Errors are complete and sorted by position.
/// Throws nothing, whatever the text holds. Thread-safe.
[[nodiscard]] Parsed parse(std::string_view text, std::string file_name);

/// Reads the file and parses it. A file that cannot be read is an error like any other.
[[nodiscard]] Parsed load(const std::string& path);

/// Every setting as YAML that `parse` turns back into an equal configuration.
[[nodiscard]] std::string to_yaml(const core::Config& config);

}  // namespace apusched::settings
