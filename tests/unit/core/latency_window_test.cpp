// SPDX-License-Identifier: MIT
#include "core/latency_window.hpp"

#include <gtest/gtest.h>

namespace apusched::core {
namespace {
using namespace std::chrono_literals;

TEST(LatencyWindow, knows_nothing_before_the_first_sample) {
  EXPECT_FALSE(LatencyWindow(10).summary());
}

TEST(LatencyWindow, gives_percentiles_by_nearest_rank) {
  LatencyWindow window(100);
  for (int i = 100; i >= 1; --i) window.add(std::chrono::microseconds(i));
  const auto summary = window.summary();
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->p50, 50us);
  EXPECT_EQ(summary->p95, 95us);
  EXPECT_EQ(summary->p99, 99us);
  EXPECT_EQ(summary->max, 100us);
}

TEST(LatencyWindow, forgets_old_samples_but_not_how_many_there_were) {
  LatencyWindow window(2);
  window.add(1000us);
  window.add(1us);
  window.add(2us);
  const auto summary = window.summary();
  EXPECT_EQ(summary->max, 2us);
  EXPECT_EQ(summary->in_window, 2U);
  EXPECT_EQ(summary->total, 3U);
}

TEST(LatencyWindow, counts_lost_samples_apart) {
  LatencyWindow window(2);
  window.add_lost();
  const auto summary = window.summary();
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->lost, 1U);
  EXPECT_EQ(summary->total, 0U);
  EXPECT_EQ(summary->p99, 0us);
}

TEST(LatencyWindow, a_single_sample_is_every_percentile) {
  LatencyWindow window(5);
  window.add(7us);
  EXPECT_EQ(window.summary()->p50, 7us);
  EXPECT_EQ(window.summary()->p99, 7us);
}

}  // namespace
}  // namespace apusched::core
