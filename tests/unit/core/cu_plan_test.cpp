// SPDX-License-Identifier: MIT
#include "core/cu_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace apusched::core {
namespace {

constexpr CuGeometry kRembrandt{12, 1, 2, 1, true};
constexpr CuGeometry kStrixHalo{40, 2, 2, 1, true};
constexpr CuGeometry kCezanne{8, 1, 1, 1, false};
constexpr CuGeometry kMi300a{228, 4, 1, 6, false};

RegistrationId holder(std::int64_t number) {
  return *RegistrationId::make(number);
}

CuDemand demand(std::int64_t who, std::int64_t weight, bool exclusive) {
  return {holder(who), *CuWeight::make(weight), exclusive, std::nullopt};
}

std::uint32_t cus(const CuPlan& plan, std::int64_t who) {
  return plan.at(holder(who)).count();
}

/// CUs of a mask on each engine, as amdkfd deals the bits.
std::vector<std::uint32_t> per_engine(const CuGeometry& geometry, const CuMask& mask) {
  const auto engines = geometry.engines * geometry.xccs;
  const std::uint32_t width = geometry.paired ? 2 : 1;
  std::vector<std::uint32_t> result(engines);
  for (std::uint32_t bit = 0; bit < geometry.compute_units; ++bit)
    if (mask.test(bit)) ++result[bit / width % engines];
  return result;
}

TEST(CuPlan, gives_a_lone_process_everything) {
  const auto plan = plan_cus(kRembrandt, {demand(1, 100, true)}, {});
  EXPECT_EQ(cus(plan, 1), 12U);
}

TEST(CuPlan, without_exclusive_ones_everybody_has_everything) {
  const auto plan = plan_cus(kRembrandt, {demand(1, 300, false), demand(2, 100, false)}, {});
  EXPECT_EQ(cus(plan, 1), 12U);
  EXPECT_EQ(cus(plan, 2), 12U);
}

TEST(CuPlan, divides_by_weight_between_an_exclusive_one_and_the_rest) {
  const auto plan =
      plan_cus(kStrixHalo, {demand(1, 300, true), demand(2, 50, false), demand(3, 50, false)}, {});
  EXPECT_EQ(cus(plan, 1), 28U);  // 7.5 of 10 units, and equal remainders are the others'
  EXPECT_EQ(cus(plan, 2), 12U);
  EXPECT_EQ(plan.at(holder(2)), plan.at(holder(3)));
  EXPECT_FALSE(plan.at(holder(1)).intersects(plan.at(holder(2))));
}

TEST(CuPlan, takes_one_unit_of_six_from_the_rest_for_a_quarter) {
  const auto plan = plan_cus(kRembrandt, {demand(1, 100, true), demand(2, 300, false)}, {});
  EXPECT_EQ(cus(plan, 1), 2U);
  EXPECT_EQ(cus(plan, 2), 10U);
}

TEST(CuPlan, two_exclusive_ones_at_two_to_one_get_two_thirds_and_one_third) {
  const auto plan = plan_cus(kRembrandt, {demand(1, 200, true), demand(2, 100, true)}, {});
  EXPECT_EQ(cus(plan, 1), 8U);
  EXPECT_EQ(cus(plan, 2), 4U);
}

TEST(CuPlan, keeps_pairs_together) {
  const auto plan = plan_cus(kRembrandt, {demand(1, 100, true), demand(2, 117, true)}, {});
  for (const auto& [who, mask] : plan)
    for (std::uint32_t bit = 0; bit < 12; bit += 2) EXPECT_EQ(mask.test(bit), mask.test(bit + 1));
}

TEST(CuPlan, spreads_over_arrays_where_an_engine_has_several) {
  const auto plan = plan_cus(kRembrandt, {demand(1, 100, true), demand(2, 200, true)}, {});
  // Pair p is on array p % 2 (one engine, two arrays).
  const auto& mask = plan.at(holder(2));
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  for (std::uint32_t bit = 0; bit < 12; ++bit) {
    if (!mask.test(bit)) continue;
    ++(bit / 2 % 2 == 0 ? first : second);
  }
  EXPECT_EQ(first, second);
}

TEST(CuPlan, a_limit_caps_the_share_of_one_that_shares) {
  auto background = demand(1, 100, false);
  background.limit = Percent::of<50>();
  const auto plan = plan_cus(kStrixHalo, {background, demand(2, 100, false)}, {});
  EXPECT_EQ(cus(plan, 1), 20U);
  EXPECT_EQ(cus(plan, 2), 40U);
}

TEST(CuPlan, a_limit_below_one_unit_leaves_one_unit) {
  auto background = demand(1, 100, false);
  background.limit = Percent::of<1>();
  EXPECT_EQ(cus(plan_cus(kStrixHalo, {background}, {}), 1), 4U);
}

TEST(CuPlan, a_newcomer_takes_no_more_than_its_share_from_who_was_there) {
  const auto before = plan_cus(kStrixHalo, {demand(1, 100, true), demand(2, 100, true)}, {});
  const auto after = plan_cus(
      kStrixHalo, {demand(1, 100, true), demand(2, 100, true), demand(3, 100, true)}, before);
  for (const std::int64_t who : {1, 2})
    for (std::uint32_t bit = 0; bit < 40; ++bit)
      EXPECT_TRUE(!after.at(holder(who)).test(bit) || before.at(holder(who)).test(bit));
}

TEST(CuPlan, nothing_changes_when_nothing_changes) {
  std::vector<CuDemand> demands{demand(1, 100, true), demand(2, 70, true), demand(3, 10, false)};
  const auto before = plan_cus(kStrixHalo, demands, {});
  EXPECT_EQ(plan_cus(kStrixHalo, demands, before), before);
  std::ranges::reverse(demands);
  EXPECT_EQ(plan_cus(kStrixHalo, demands, before), before);
}

TEST(CuPlan, when_units_run_out_the_lightest_share) {
  std::vector<CuDemand> demands;
  for (std::int64_t who = 1; who <= 10; ++who) demands.push_back(demand(who, 100 + who, true));
  const auto plan = plan_cus(kRembrandt, demands, {});  // 6 units
  EXPECT_EQ(plan.size(), 10U);
  EXPECT_FALSE(plan.at(holder(10)).intersects(plan.at(holder(9))));
  EXPECT_EQ(plan.at(holder(1)), plan.at(holder(2)));
}

TEST(CuPlan, a_gpu_without_cus_has_no_plan) {
  EXPECT_TRUE(plan_cus({}, {demand(1, 100, true)}, {}).empty());
}

TEST(CuPlan, every_mi300a_unit_has_a_cu_on_each_engine_of_each_xcc) {
  const auto plan = plan_cus(kMi300a, {demand(1, 100, true), demand(2, 100, true)}, {});
  for (const auto& [who, mask] : plan) {
    const auto engines = per_engine(kMi300a, mask);
    EXPECT_LE(*std::ranges::max_element(engines) - *std::ranges::min_element(engines), 1U);
  }
}

struct Draw {
  std::mt19937 random;
  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  }
};

std::vector<CuDemand> any_demands(Draw& draw) {
  std::vector<CuDemand> demands;
  const auto count = draw(1, 14);
  for (std::int64_t who = 1; who <= count; ++who) {
    demands.push_back(demand(who, draw(1, 1000), draw(0, 1) == 1));
    if (draw(0, 2) == 0) demands.back().limit = Percent::make(draw(1, 100));
  }
  return demands;
}

void expect_sound(const CuGeometry& geometry, const std::vector<CuDemand>& demands,
                  const CuPlan& plan) {
  ASSERT_EQ(plan.size(), demands.size());
  const auto spare = geometry.compute_units % cus_per_unit(geometry);
  for (const auto& [who, mask] : plan) {
    EXPECT_FALSE(mask.empty());
    EXPECT_LE(mask.count(), geometry.compute_units);
    const auto engines = per_engine(geometry, mask);
    EXPECT_LE(*std::ranges::max_element(engines) - *std::ranges::min_element(engines),
              spare == 0 ? 0U : 1U + spare / engines.size());
  }
}

TEST(CuPlan, of_any_demands_on_any_gpu_is_balanced_and_leaves_nobody_without) {
  Draw draw{std::mt19937(7)};
  for (const auto& geometry : {kRembrandt, kStrixHalo, kCezanne, kMi300a}) {
    CuPlan previous;
    for (int round = 0; round < 500; ++round) {
      const auto demands = any_demands(draw);
      const auto plan = plan_cus(geometry, demands, previous);
      expect_sound(geometry, demands, plan);
      // Planned again from itself it stays: no queue is mapped anew for nothing.
      EXPECT_EQ(plan_cus(geometry, demands, plan), plan);
      previous = plan;
    }
  }
}

TEST(CuPlan, exclusive_ones_that_fit_never_meet_anybody) {
  Draw draw{std::mt19937(11)};
  for (int round = 0; round < 500; ++round) {
    std::vector<CuDemand> demands;
    const auto exclusive = draw(1, 9);
    for (std::int64_t who = 1; who <= exclusive; ++who)
      demands.push_back(demand(who, draw(1, 1000), true));
    demands.push_back(demand(99, draw(1, 1000), false));
    const auto plan = plan_cus(kStrixHalo, demands, {});
    for (const auto& a : demands)
      for (const auto& b : demands)
        EXPECT_EQ(plan.at(a.holder).intersects(plan.at(b.holder)), a.holder == b.holder);
  }
}

TEST(CuMask, is_written_with_the_digits_that_the_gpu_needs) {
  EXPECT_EQ(CuMask::first(6).to_hex(12), "0x03f");
  EXPECT_EQ(CuMask::first(40).to_hex(40), "0xffffffffff");
  EXPECT_EQ(CuMask().to_hex(8), "0x00");
}

TEST(CuMask, takes_no_bit_beyond_what_the_kernel_takes) {
  CuMask mask;
  mask.set(5000);
  EXPECT_TRUE(mask.empty());
  EXPECT_FALSE(mask.test(5000));
  EXPECT_EQ(CuMask::first(5000).count(), 1024U);
}

}  // namespace
}  // namespace apusched::core
