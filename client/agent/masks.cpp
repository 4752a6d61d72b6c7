// SPDX-License-Identifier: MIT
#include "agent/masks.hpp"

#include <algorithm>

namespace apusched::agent {

CuMask mask_from(std::uint32_t bits, const std::uint32_t* words) noexcept {
  CuMask mask;
  mask.bits = bits;
  std::copy_n(words, bits / 32, mask.words.begin());
  return mask;
}

CuMask all_of(std::uint32_t compute_units) noexcept {
  CuMask mask;
  const std::uint32_t units = std::min<std::uint32_t>(compute_units, 32 * agent_abi::kMaxMaskWords);
  mask.bits = (units + 31) / 32 * 32;
  for (std::uint32_t i = 0; i < units; i++) mask.words[i / 32] |= 1U << (i % 32);
  return mask;
}

CuMask both(const CuMask& one, const CuMask& other) noexcept {
  if (one.bits == 0) return other;
  if (other.bits == 0) return one;
  CuMask mask;
  mask.bits = std::min(one.bits, other.bits);
  for (std::size_t i = 0; i < mask.bits / 32; i++) mask.words[i] = one.words[i] & other.words[i];
  return mask;
}

CuMask whole_pairs(const CuMask& mask) noexcept {
  constexpr std::uint32_t kLower = 0x55555555;
  CuMask whole = mask;
  for (auto& word : whole.words) {
    const std::uint32_t pairs = word & (word >> 1) & kLower;
    word = pairs | pairs << 1;
  }
  return whole;
}

bool enables_none(const CuMask& mask) noexcept {
  return mask.bits != 0 &&
         std::ranges::all_of(mask.words, [](std::uint32_t word) { return word == 0; });
}

Effective effective_mask(const CuMask& ours, const CuMask& program, const CuMask& base,
                         bool pairs) noexcept {
  if (ours.bits == 0) return {program, false, false};
  const CuMask mask = both(both(pairs ? whole_pairs(ours) : ours, base), program);
  if (enables_none(mask)) return {program, false, true};
  return {mask, true, false};
}

}  // namespace apusched::agent
