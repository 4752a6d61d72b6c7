// SPDX-License-Identifier: MIT
#include "core/cu_mask.hpp"

#include <algorithm>
#include <bit>
#include <string_view>

namespace apusched::core {

CuMask CuMask::first(std::uint32_t count) {
  CuMask mask;
  for (std::uint32_t bit = 0; bit < std::min(count, kMaxBits); ++bit) mask.set(bit);
  return mask;
}

void CuMask::set(std::uint32_t bit) {
  if (bit < kMaxBits) words_.at(bit / kWordBits) |= 1U << bit % kWordBits;
}

bool CuMask::test(std::uint32_t bit) const {
  return bit < kMaxBits && (words_.at(bit / kWordBits) >> bit % kWordBits & 1U) != 0;
}

std::uint32_t CuMask::count() const {
  std::uint32_t total = 0;
  for (const auto word : words_) total += static_cast<std::uint32_t>(std::popcount(word));
  return total;
}

bool CuMask::intersects(const CuMask& other) const {
  for (std::size_t i = 0; i < words_.size(); ++i)
    if ((words_.at(i) & other.words_.at(i)) != 0) return true;
  return false;
}

std::string CuMask::to_hex(std::uint32_t bits) const {
  constexpr std::uint32_t kDigitBits = 4;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "0x";
  const auto digits = std::max(1U, (std::min(bits, kMaxBits) + kDigitBits - 1) / kDigitBits);
  for (std::uint32_t digit = digits; digit-- > 0;) {
    const auto at = digit * kDigitBits;
    text += kDigits[words_.at(at / kWordBits) >> at % kWordBits & 0xfU];
  }
  return text;
}

}  // namespace apusched::core
