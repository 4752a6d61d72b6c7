// SPDX-License-Identifier: MIT
#pragma once

#include <charconv>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace apusched::core {

/// A whole decimal number and nothing else: no blanks, no sign but '-', no trailing text.
[[nodiscard]] inline std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || text.empty()) return std::nullopt;
  return value;
}

/// An integer whose range is checked where it is made, so that no function has to check again.
template <typename Tag, typename Rep, Rep Min, Rep Max>
class Bounded {
 public:
  static constexpr Rep kMin = Min;
  static constexpr Rep kMax = Max;

  [[nodiscard]] static constexpr std::optional<Bounded> make(std::int64_t value) {
    if (value < static_cast<std::int64_t>(Min) || value > static_cast<std::int64_t>(Max))
      return std::nullopt;
    return Bounded(static_cast<Rep>(value));
  }
  [[nodiscard]] static std::optional<Bounded> parse(std::string_view text) {
    const auto value = parse_integer(text);
    return value ? make(*value) : std::nullopt;
  }
  /// For constants: an out-of-range value does not compile.
  template <Rep Value>
  [[nodiscard]] static consteval Bounded of() {
    static_assert(Value >= Min && Value <= Max);
    return Bounded(Value);
  }

  [[nodiscard]] constexpr Rep value() const { return value_; }
  constexpr auto operator<=>(const Bounded&) const = default;

 private:
  explicit constexpr Bounded(Rep value) : value_(value) {}
  Rep value_;
};

template <typename Tag, typename Rep, Rep Min, Rep Max>
[[nodiscard]] std::string to_string(const Bounded<Tag, Rep, Min, Max>& bounded) {
  return std::to_string(bounded.value());
}

}  // namespace apusched::core
