// SPDX-License-Identifier: MIT
#include "agent/masks.hpp"

#include <gtest/gtest.h>

namespace apusched::agent {
namespace {

CuMask word(std::uint32_t bits) {
  return mask_from(32, &bits);
}
const CuMask kNone;

TEST(Masks, no_mask_is_all_cus) {
  EXPECT_EQ(both(kNone, word(0x3)), word(0x3));
  EXPECT_EQ(both(word(0x3), kNone), word(0x3));
  EXPECT_EQ(both(kNone, kNone).bits, 0U);
  EXPECT_FALSE(enables_none(kNone));
}

TEST(Masks, bits_past_the_shorter_mask_are_disabled) {
  const std::uint32_t two[] = {0xF, 0xF};
  EXPECT_EQ(both(mask_from(64, two), word(0xFF)), word(0xF));
}

TEST(Masks, all_cus_of_a_gpu_end_in_the_middle_of_a_word) {
  EXPECT_EQ(all_of(12), word(0xFFF));
  EXPECT_EQ(all_of(40).bits, 64U);
  EXPECT_EQ(all_of(40).words[1], 0xFFU);
  EXPECT_EQ(all_of(1'000'000).bits, 1024U);
}

TEST(Masks, half_pairs_are_dropped) {
  EXPECT_EQ(whole_pairs(word(0b1101'0111)), word(0b1100'0011));
  EXPECT_EQ(whole_pairs(word(0xFFFFFFFF)), word(0xFFFFFFFF));
  EXPECT_TRUE(enables_none(whole_pairs(word(0x55555555))));
}

TEST(EffectiveMask, without_ours_is_what_the_program_asked_for) {
  const Effective effective = effective_mask(kNone, word(0x5), all_of(12), true);
  EXPECT_EQ(effective.mask, word(0x5));
  EXPECT_FALSE(effective.ours);
  EXPECT_EQ(effective_mask(kNone, kNone, all_of(12), true).mask, kNone);
}

TEST(EffectiveMask, is_ours_and_the_programs) {
  const Effective effective = effective_mask(word(0xFC), word(0x3F), all_of(12), true);
  EXPECT_EQ(effective.mask, word(0x3C));
  EXPECT_TRUE(effective.ours);
}

TEST(EffectiveMask, is_never_empty) {
  const Effective apart = effective_mask(word(0xC), word(0x3), all_of(12), true);
  EXPECT_EQ(apart.mask, word(0x3));
  EXPECT_TRUE(apart.conflict);
  const Effective beyond = effective_mask(word(0xF000), kNone, all_of(12), true);
  EXPECT_EQ(beyond.mask, kNone);
  EXPECT_TRUE(beyond.conflict);
  EXPECT_TRUE(effective_mask(word(0), kNone, all_of(12), true).conflict);
  EXPECT_TRUE(effective_mask(word(0x5), kNone, all_of(12), true).conflict);
}

TEST(EffectiveMask, heeds_what_the_environment_left_of_the_gpu) {
  EXPECT_EQ(effective_mask(word(0xFC), kNone, word(0xF), true).mask, word(0xC));
  EXPECT_TRUE(effective_mask(word(0xF0), kNone, word(0xF), true).conflict);
}

TEST(EffectiveMask, leaves_half_pairs_where_the_gpu_has_none_and_to_the_program) {
  EXPECT_EQ(effective_mask(word(0x5), kNone, all_of(8), false).mask, word(0x5));
  EXPECT_EQ(effective_mask(word(0xF), word(0x7), all_of(12), true).mask, word(0x7));
}

}  // namespace
}  // namespace apusched::agent
