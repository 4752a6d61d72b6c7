// SPDX-License-Identifier: MIT
#include "core/baseline.hpp"

#include <gtest/gtest.h>

namespace apusched::core {
namespace {

constexpr auto kHalfMore = PercentOf::of<150>();

void add(Baseline& baseline, double observation, bool undisturbed, int times) {
  for (int i = 0; i < times; ++i) baseline.add(observation, undisturbed);
}

TEST(Baseline, is_the_middle_of_what_was_seen_undisturbed) {
  Baseline baseline;
  add(baseline, 100, true, 4);
  EXPECT_FALSE(baseline.undisturbed());
  add(baseline, 100, true, 3);
  add(baseline, 90000, true, 1);  // one outlier is no yardstick
  EXPECT_EQ(baseline.undisturbed(), 100);
  EXPECT_EQ(baseline.target(kHalfMore, false), 150);
}

TEST(Baseline, is_not_moved_by_what_is_seen_beside_others) {
  Baseline baseline;
  add(baseline, 100, true, 10);
  add(baseline, 900, false, 1000);
  EXPECT_EQ(baseline.target(kHalfMore, true), 150);
}

TEST(Baseline, follows_another_model_in_the_same_process) {
  Baseline baseline;
  add(baseline, 100, true, 100);
  add(baseline, 400, true, 20);
  EXPECT_EQ(baseline.undisturbed(), 400);
}

TEST(Baseline, unknown_makes_everything_too_long_until_all_was_tried) {
  Baseline baseline;
  add(baseline, 900, false, 20);
  EXPECT_EQ(baseline.target(kHalfMore, false), 0);
  add(baseline, 200, false, 5);
  add(baseline, 900, false, 5);
  EXPECT_EQ(baseline.target(kHalfMore, true), 300);  // the best that was reached
}

}  // namespace
}  // namespace apusched::core
