// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace apusched::ctl {

/// The text without control characters: names of other users' programs reach a terminal here.
[[nodiscard]] std::string printable(std::string_view text);
/// Code points of UTF-8 text, as a stand-in for columns (all our own texts are one column each).
[[nodiscard]] std::size_t columns(std::string_view text);

[[nodiscard]] std::string human(std::chrono::nanoseconds duration);  ///< "8.1 µs"
[[nodiscard]] std::string human_bytes(std::uint64_t bytes);          ///< "512 MiB"
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view singular,
                                  std::string_view plural);  ///< "1 thread", "2 threads"

enum class Tone { plain, strong, good, attention, bad, faint };

/// Colours where they are wanted, nothing otherwise.
class Style {
 public:
  explicit Style(bool colour) : colour_(colour) {}
  [[nodiscard]] std::string paint(Tone tone, std::string_view text) const;

 private:
  bool colour_;
};

/// Colours only on a terminal, and not where NO_COLOR is set (to anything but nothing) or the
/// terminal is "dumb".
[[nodiscard]] bool wants_colour(bool is_terminal, std::optional<std::string_view> no_color,
                                std::optional<std::string_view> term);

struct Cell {
  std::string text;
  Tone tone = Tone::plain;
};

/// Rows of cells in aligned columns, two blanks apart; no trailing blanks.
class Table {
 public:
  enum class Align { left, right };
  explicit Table(std::vector<Align> columns) : align_(std::move(columns)) {}
  void row(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }
  [[nodiscard]] std::string render(const Style& style, std::string_view indent) const;

 private:
  std::vector<Align> align_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace apusched::ctl
