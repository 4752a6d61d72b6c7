// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace apusched::settings {

struct Position {
  int line = 1;
  int column = 1;
  auto operator<=>(const Position&) const = default;
};

struct MapEntry;

/// A YAML value as written, with its place. Knows nothing of the settings it stands for.
struct Value {
  enum class Kind { null, scalar, sequence, map };
  Kind kind = Kind::null;
  std::string text;     ///< scalars
  bool quoted = false;  ///< scalars: "10" is text, 10 is a number
  Position position;
  std::vector<Value> items;       ///< sequences
  std::vector<MapEntry> entries;  ///< maps, in order, duplicates included
};

struct MapEntry {
  Value key;
  Value value;
};

/// What keeps a text from being a document of plain values.
struct Problem {
  Position position;
  std::string expected;
  std::string got;
};

/// Nesting deeper than this is refused; the settings need three levels.
inline constexpr std::size_t kMaxDepth = 16;

/// One YAML document without anchors, aliases and tags (the settings need none, and an alias can
/// make a short file mean a huge one). An empty text is a null value. The only user of yaml-cpp's
/// parser; its exceptions end here.
[[nodiscard]] tl::expected<Value, std::vector<Problem>> read_document(std::string_view text);

}  // namespace apusched::settings
