// SPDX-License-Identifier: MIT
#include "core/ledger.hpp"

#include <gtest/gtest.h>

namespace apusched::core {
namespace {

const ResourceKey kUnit{LeverKind::cpu_weight, "llama.service"};
const auto kFirst = RegistrationId::of<1>();
const auto kSecond = RegistrationId::of<2>();
LeverValue weight(std::uint32_t value) {
  return *Weight::make(value);
}

TEST(Ledger, asks_for_the_first_holders_wish) {
  Ledger ledger;
  const auto step = ledger.hold(kUnit, {kFirst, weight(500)}, Weight());
  EXPECT_EQ(step.write, weight(500));
  EXPECT_EQ(ledger.find(kUnit)->original, LeverValue(Weight()));
}

TEST(Ledger, keeps_the_first_original_when_a_second_holder_joins) {
  Ledger ledger;
  ledger.hold(kUnit, {kFirst, weight(500)}, Weight());
  ledger.note_written(kUnit, weight(500));
  ledger.hold(kUnit, {kSecond, weight(300)}, weight(500));
  EXPECT_EQ(ledger.find(kUnit)->original, LeverValue(Weight()));
}

TEST(Ledger, the_strongest_wish_wins_and_the_last_one_restores) {
  Ledger ledger;
  ledger.hold(kUnit, {kFirst, weight(300)}, Weight());
  ledger.note_written(kUnit, weight(300));
  EXPECT_EQ(ledger.hold(kUnit, {kSecond, weight(500)}, Weight()).write, weight(500));
  ledger.note_written(kUnit, weight(500));

  const auto weaker = ledger.release(kUnit, kSecond);
  EXPECT_EQ(weaker.write, weight(300));
  EXPECT_FALSE(weaker.last_holder_left);
  ledger.note_written(kUnit, weight(300));

  const auto last = ledger.release(kUnit, kFirst);
  EXPECT_EQ(last.write, LeverValue(Weight()));
  EXPECT_TRUE(last.last_holder_left);
}

TEST(Ledger, asks_for_nothing_when_a_weaker_wish_joins_or_leaves) {
  Ledger ledger;
  ledger.hold(kUnit, {kFirst, weight(500)}, Weight());
  ledger.note_written(kUnit, weight(500));
  EXPECT_FALSE(ledger.hold(kUnit, {kSecond, weight(300)}, Weight()).write);
  EXPECT_FALSE(ledger.release(kUnit, kSecond).write);
}

TEST(Ledger, leaves_a_contended_resource_to_its_new_owner) {
  Ledger ledger;
  ledger.hold(kUnit, {kFirst, weight(500)}, Weight());
  ledger.note_written(kUnit, weight(500));
  ledger.note_contended(kUnit);
  EXPECT_FALSE(ledger.hold(kUnit, {kSecond, weight(900)}, Weight()).write);
  EXPECT_FALSE(ledger.release(kUnit, kSecond).write);
  const auto last = ledger.release(kUnit, kFirst);
  EXPECT_FALSE(last.write);
  EXPECT_TRUE(last.last_holder_left);
}

TEST(Ledger, restores_nothing_that_was_never_written) {
  Ledger ledger;
  ledger.hold(kUnit, {kFirst, weight(500)}, Weight());
  const auto step = ledger.release(kUnit, kFirst);
  EXPECT_FALSE(step.write);
  EXPECT_TRUE(step.last_holder_left);
}

TEST(Ledger, ignores_a_release_by_a_stranger) {
  Ledger ledger;
  ledger.hold(kUnit, {kFirst, weight(500)}, Weight());
  EXPECT_FALSE(ledger.release(kUnit, kSecond).last_holder_left);
  EXPECT_EQ(ledger.held_by(kFirst).size(), 1U);
  EXPECT_TRUE(ledger.held_by(kSecond).empty());
}

TEST(ResourceKey, names_a_thread_by_tid_and_start) {
  const ThreadKey thread{Tid::of<42>(), StartTime{777}};
  EXPECT_EQ(resource_thread(thread_resource(LeverKind::nice, thread)), thread);
  EXPECT_EQ(resource_thread(thread_resource(LeverKind::timer_slack, thread)), thread);
  EXPECT_FALSE(resource_thread({LeverKind::nice, "42"}));
  EXPECT_FALSE(resource_thread({LeverKind::nice, "42:-1"}));
  EXPECT_FALSE(resource_thread({LeverKind::nice, "x:1"}));
  EXPECT_FALSE(resource_thread({LeverKind::autogroup, "42:1"}));
}

}  // namespace
}  // namespace apusched::core
