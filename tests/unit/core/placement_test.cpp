// SPDX-License-Identifier: MIT
#include "core/placement.hpp"

#include <gtest/gtest.h>

namespace apusched::core {
namespace {

Placement in_session() {
  return {"/", true, "/autogroup-7", false};
}
Placement in_unit() {
  return {"/system.slice/llama.service", true, "/autogroup-7", false};
}

TEST(Reach, an_autogroup_acts_for_a_process_in_the_root_cpu_group) {
  EXPECT_TRUE(reach_of(LeverKind::autogroup, in_session()).acts);
}

TEST(Reach, a_cpu_cgroup_overrides_the_autogroup) {
  const auto reach = reach_of(LeverKind::autogroup, in_unit());
  EXPECT_FALSE(reach.acts);
  EXPECT_NE(reach.explanation.find("llama.service"), std::string::npos);
}

TEST(Reach, autogroups_that_are_off_cannot_act) {
  auto placement = in_session();
  placement.autogroup_enabled = false;
  EXPECT_FALSE(reach_of(LeverKind::autogroup, placement).acts);
}

TEST(Reach, a_weight_acts_even_before_systemd_has_made_a_cpu_group_for_the_unit) {
  // Setting the weight is what makes systemd enable the cpu controller for the unit.
  EXPECT_TRUE(reach_of(LeverKind::cpu_weight, in_unit()).acts);
  EXPECT_TRUE(reach_of(LeverKind::cpu_weight, in_session()).acts);
}

TEST(Reach, nice_says_against_whom_it_acts) {
  EXPECT_NE(reach_of(LeverKind::nice, in_session()).explanation.find("same session"),
            std::string::npos);
  EXPECT_NE(reach_of(LeverKind::nice, in_unit()).explanation.find("same cgroup"),
            std::string::npos);
}

TEST(Reach, warns_that_a_bpf_scheduler_may_ignore_weights) {
  auto placement = in_unit();
  placement.sched_ext_active = true;
  EXPECT_NE(reach_of(LeverKind::cpu_weight, placement).explanation.find("sched_ext"),
            std::string::npos);
}

TEST(Slices, are_those_on_the_way_from_the_unit_to_the_root) {
  const std::vector<SliceStep> steps{
      {"apu-left.slice", "/apu.slice/apu-left.slice", "llama.service"},
      {"apu.slice", "/apu.slice", "apu-left.slice"}};
  EXPECT_EQ(slices_above("/apu.slice/apu-left.slice/llama.service", "llama.service"), steps);
  EXPECT_EQ(slices_above("/apu.slice/apu-left.slice/llama.service/worker", "llama.service"), steps);
  EXPECT_TRUE(slices_above("/llama.service", "llama.service").empty());
}

TEST(Slices, of_another_managers_units_are_not_ours_to_set) {
  EXPECT_TRUE(
      slices_above("/user.slice/user-7.slice/user@7.service/app.slice/a.service", "a.service")
          .empty());
  EXPECT_TRUE(slices_above("/user.slice/session-1.scope", "llama.service").empty());
  EXPECT_TRUE(slices_above("", "llama.service").empty());
  EXPECT_TRUE(slices_above("relative.slice/llama.service", "llama.service").empty());
}

}  // namespace
}  // namespace apusched::core
