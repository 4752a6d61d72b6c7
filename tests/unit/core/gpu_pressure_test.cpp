// SPDX-License-Identifier: MIT
#include "core/gpu_pressure.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace apusched::core {
namespace {

RegistrationId number(std::int64_t id) {
  return *RegistrationId::make(id);
}

GpuParty party(std::int64_t id, WorkClass work_class, double busy = 1) {
  return {number(id), work_class, {}, false, {}, busy, false, true, true, true, false};
}

const Rung& named(const std::vector<Rung>& rungs, std::string_view name) {
  return *std::ranges::find(rungs, name, &Rung::name);
}

constexpr CuGeometry kBigApu{40, 2, 2, 1, true};

TEST(GpuRungs, act_where_somebody_of_a_lower_class_has_an_agent) {
  const auto of = party(1, WorkClass::critical);
  const auto rungs = gpu_rungs({of, party(2, WorkClass::background)}, of, true);
  EXPECT_EQ(rungs.front().name, "queue_priority");
  EXPECT_TRUE(named(rungs, "queue_priority").available);
  EXPECT_TRUE(named(rungs, "cu_share_25").available);
  EXPECT_TRUE(named(rungs, "gate").available);
  EXPECT_FALSE(named(rungs, "cu_fair").available);
}

TEST(GpuRungs, say_why_they_cannot_act) {
  const auto of = party(1, WorkClass::critical);
  const auto alone = gpu_rungs({of}, of, true);
  for (const auto& rung : alone) EXPECT_FALSE(rung.available || rung.why_not.empty()) << rung.name;
  EXPECT_EQ(named(alone, "gate").why_not,
            "no process of a lower class with an agent is on this GPU");
  auto bound = party(2, WorkClass::background);
  bound.can_mask = false;
  bound.low_already = true;
  const auto rungs = gpu_rungs({of, bound}, of, true);
  EXPECT_EQ(named(rungs, "cu_share_50").why_not, "the agents of the others cannot set it");
  EXPECT_EQ(named(rungs, "queue_priority").why_not,
            "the queues of the others have the lowest priority already");
}

TEST(GpuRungs, priorities_are_no_rung_where_the_firmware_does_not_compare_processes) {
  EXPECT_TRUE(priority_acts_between_processes("gfx90c"));
  EXPECT_TRUE(priority_acts_between_processes("gfx942"));
  EXPECT_TRUE(priority_acts_between_processes("gfx1035"));
  for (const auto* isa : {"gfx1103", "gfx1151", "gfx1201", "", "gfx", "mars", "gfx103", "gfx99999"})
    EXPECT_FALSE(priority_acts_between_processes(isa)) << isa;
  const auto of = party(1, WorkClass::critical);
  const auto rungs = gpu_rungs({of, party(2, WorkClass::background)}, of, false);
  EXPECT_FALSE(named(rungs, "queue_priority").available);
}

TEST(GpuRungs, of_one_class_divide_fairly_instead) {
  const auto of = party(1, WorkClass::critical);
  const auto rungs = gpu_rungs({of, party(2, WorkClass::critical)}, of, true);
  EXPECT_TRUE(named(rungs, "cu_fair").available);
  EXPECT_FALSE(named(rungs, "cu_share_25").available);
}

TEST(GpuPressure, takes_the_strongest_share_that_is_engaged) {
  const auto pressure =
      pressure_of({"cu_share_25", "cu_share_75", "cu_share_50", "gate"}, WorkClass::critical);
  EXPECT_EQ(pressure.share, Percent::of<75>());
  EXPECT_TRUE(pressure.gate);
  EXPECT_FALSE(pressure.lower_priority);
  EXPECT_EQ(pressure_of({}, WorkClass::critical),
            (GpuPressure{WorkClass::critical, false, {}, false}));
}

TEST(GpuPressure, of_a_higher_class_counts_alone) {
  const GpuPressure high{WorkClass::critical, false, Percent::of<25>(), false};
  const GpuPressure low{WorkClass::interactive, true, Percent::of<75>(), true};
  EXPECT_EQ(stronger(high, low), high);
  EXPECT_EQ(stronger(low, high), high);
  const GpuPressure other{WorkClass::critical, true, {}, false};
  EXPECT_EQ(stronger(high, other),
            (GpuPressure{WorkClass::critical, true, Percent::of<25>(), false}));
}

TEST(Rivalry, is_of_the_busiest_that_is_no_higher_class) {
  const auto of = party(1, WorkClass::interactive);
  EXPECT_EQ(rivalry({of}, of), 0);
  EXPECT_EQ(
      rivalry({of, party(2, WorkClass::background, 0.3), party(3, WorkClass::batch, 0.7)}, of),
      0.7);
  EXPECT_EQ(rivalry({of, party(2, WorkClass::critical, 0.9)}, of), 0);
  EXPECT_EQ(rivalry({of, party(2, WorkClass::interactive, 0.4)}, of), 0.4);
}

TEST(Demands, without_pressure_are_what_profiles_say) {
  auto weighted = party(1, WorkClass::critical);
  weighted.weight = CuWeight::of<200>();
  weighted.exclusive = true;
  auto limited = party(2, WorkClass::background);
  limited.limit = Percent::of<50>();
  limited.exclusive = true;  // without a weight that says nothing
  const auto demands = demands_under({weighted, limited, party(3, WorkClass::batch)}, {});
  ASSERT_EQ(demands.size(), 2U);
  EXPECT_TRUE(demands[0].exclusive);
  EXPECT_EQ(demands[0].weight, CuWeight::of<200>());
  EXPECT_FALSE(demands[1].exclusive);
  EXPECT_EQ(demands[1].limit, Percent::of<50>());
}

std::uint32_t cus_of(const CuPlan& plan, std::int64_t id) {
  return static_cast<std::uint32_t>(plan.at(number(id)).count());
}

TEST(Demands, under_a_share_give_it_to_the_protected_alone) {
  const std::vector parties{party(1, WorkClass::critical), party(2, WorkClass::background),
                            party(3, WorkClass::batch)};
  const GpuPressure half{WorkClass::critical, false, Percent::of<50>(), false};
  const auto plan = plan_cus(kBigApu, demands_under(parties, half), {});
  EXPECT_EQ(cus_of(plan, 1), 20U);
  EXPECT_EQ(cus_of(plan, 2), 20U);
  EXPECT_EQ(cus_of(plan, 3), 20U);  // these two share the rest
  EXPECT_FALSE(plan.at(number(1)).intersects(plan.at(number(2))));
  EXPECT_TRUE(plan.at(number(2)).intersects(plan.at(number(3))));
}

TEST(Demands, of_two_protected_divide_fairly_and_by_how_busy_they_are) {
  const GpuPressure all{WorkClass::critical, false, Percent::of<100>(), false};
  auto plan = plan_cus(
      kBigApu, demands_under({party(1, WorkClass::critical), party(2, WorkClass::critical)}, all),
      {});
  EXPECT_EQ(cus_of(plan, 1), cus_of(plan, 2));
  plan = plan_cus(
      kBigApu,
      demands_under({party(1, WorkClass::critical, 1), party(2, WorkClass::critical, 0.05)}, all),
      {});
  EXPECT_GT(cus_of(plan, 1), 2 * cus_of(plan, 2));
  EXPECT_GT(cus_of(plan, 2), 0U);
}

TEST(Demands, of_one_with_much_work_in_front_of_it_are_larger_but_not_without_limit) {
  const GpuPressure all{WorkClass::critical, false, Percent::of<100>(), false};
  std::vector parties{party(1, WorkClass::critical), party(2, WorkClass::critical)};
  parties.front().behind = true;
  const auto plan = plan_cus(kBigApu, demands_under(parties, all), {});
  EXPECT_GT(cus_of(plan, 1), cus_of(plan, 2));
  EXPECT_LE(cus_of(plan, 1), 3 * cus_of(plan, 2));
}

TEST(Demands, under_any_pressure_leave_everybody_something_and_keep_limits) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::vector<GpuParty> parties;
    const auto count = 1 + random() % 12;
    for (std::uint32_t id = 1; id <= count; ++id) {
      auto one =
          party(id, static_cast<WorkClass>(random() % 4), static_cast<double>(random() % 11) / 10);
      if (random() % 2 != 0) one.weight = CuWeight::make(1 + random() % 1000);
      if (random() % 3 == 0) one.limit = Percent::make(1 + random() % 100);
      one.can_mask = random() % 8 != 0;
      one.behind = random() % 3 == 0;
      parties.push_back(one);
    }
    GpuPressure pressure{static_cast<WorkClass>(random() % 4), false, {}, false};
    if (random() % 4 != 0) pressure.share = Percent::make(1 + random() % 100);
    const auto demands = demands_under(parties, pressure);
    const auto plan = plan_cus(kBigApu, demands, {});
    for (const auto& demand : demands) {
      EXPECT_GT(cus_of(plan, demand.holder.value()), 0U);
      EXPECT_EQ(demand.limit, std::ranges::find(parties, demand.holder, &GpuParty::id)->limit);
    }
  }
}

}  // namespace
}  // namespace apusched::core
