// SPDX-License-Identifier: MIT
#include "ctl/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace apusched::ctl {

std::string printable(std::string_view text) {
  std::string clean;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    clean += byte < 0x20U || byte == 0x7fU ? '?' : c;
  }
  // U+0080..U+009F in UTF-8: terminals take them for control characters too
  for (std::size_t i = 0; i + 1 < clean.size(); ++i)
    if (clean[i] == '\xc2' && static_cast<unsigned char>(clean[i + 1]) < 0xa0U)
      clean.replace(i, 2, "?");
  return clean;
}

std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

std::string human(std::chrono::nanoseconds duration) {
  const auto ns = static_cast<double>(duration.count());
  if (duration.count() < 1000) return fmt::format("{} ns", duration.count());
  if (duration.count() < 1000000) return fmt::format("{:.1f} µs", ns / 1e3);
  if (duration.count() < 1000000000) return fmt::format("{:.2f} ms", ns / 1e6);
  return fmt::format("{:.2f} s", ns / 1e9);
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  auto amount = static_cast<double>(bytes);
  while (amount >= 1024.0 && unit + 1 < kUnits.size()) {
    amount /= 1024.0;
    ++unit;
  }
  return amount >= 10.0 || unit == 0 ? fmt::format("{:.0f} {}", amount, kUnits[unit])
                                     : fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

std::string counted(std::uint64_t count, std::string_view singular, std::string_view plural) {
  return fmt::format("{} {}", count, count == 1 ? singular : plural);
}

std::string Style::paint(Tone tone, std::string_view text) const {
  constexpr std::array kCodes{"", "1", "32", "33", "31", "2"};
  if (!colour_ || tone == Tone::plain || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<std::size_t>(tone)], text);
}

bool wants_colour(bool is_terminal, std::optional<std::string_view> no_color,
                  std::optional<std::string_view> term) {
  if (!is_terminal) return false;
  if (no_color && !no_color->empty()) return false;
  return !term || *term != "dumb";
}

std::string Table::render(const Style& style, std::string_view indent) const {
  std::vector<std::size_t> widths(align_.size(), 0);
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i)
      widths[i] = std::max(widths[i], columns(row[i].text));
  std::string text;
  for (const auto& row : rows_) {
    std::string line(indent);
    std::string gap;  // written before the next cell that has text
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      const std::string pad(widths[i] - columns(row[i].text), ' ');
      if (align_[i] == Align::right) gap += pad;
      if (!row[i].text.empty()) {
        line += gap + style.paint(row[i].tone, row[i].text);
        gap.clear();
      }
      if (align_[i] == Align::left) gap += pad;
      gap += "  ";
    }
    text += line + "\n";
  }
  return text;
}

}  // namespace apusched::ctl
