// SPDX-License-Identifier: MIT
#include "agent/gate.hpp"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

#include "doubles/fake_agent_daemon.hpp"

namespace apusched::agent {
namespace {

using std::chrono::milliseconds;
constexpr Nanoseconds kStart = std::chrono::seconds{100};
constexpr Nanoseconds kOpen{0};

TEST(GatePolicy, closes_until_the_time_that_is_wished) {
  GatePolicy policy;
  EXPECT_EQ(policy.decide(kStart, kStart + milliseconds{10}).closed_until,
            kStart + milliseconds{10});
}

TEST(GatePolicy, a_time_that_has_passed_opens) {
  GatePolicy policy;
  EXPECT_EQ(policy.decide(kStart, kOpen).closed_until, kOpen);
  EXPECT_EQ(policy.decide(kStart, kStart).closed_until, kOpen);
}

TEST(GatePolicy, nothing_closes_it_for_longer_than_the_limit) {
  GatePolicy policy;
  const auto verdict = policy.decide(kStart, Nanoseconds::max());
  EXPECT_EQ(verdict.closed_until, kStart + kMaxGate);
  // Asked again while it is closed: no longer for that.
  EXPECT_EQ(policy.decide(kStart + kMaxGate / 2, Nanoseconds::max()).closed_until,
            kStart + kMaxGate);
}

TEST(GatePolicy, it_stays_open_for_as_long_as_it_was_closed) {
  GatePolicy policy;
  const auto end = policy.decide(kStart, kStart + milliseconds{10}).closed_until;
  const auto early = policy.decide(end + milliseconds{4}, end + milliseconds{40});
  EXPECT_EQ(early.closed_until, kOpen);
  EXPECT_EQ(early.look_again, end + milliseconds{10});
  const auto then = policy.decide(early.look_again, end + milliseconds{40});
  EXPECT_EQ(then.closed_until, end + milliseconds{40});
}

TEST(GatePolicy, a_wish_that_ends_while_it_must_be_open_is_over) {
  GatePolicy policy;
  const auto end = policy.decide(kStart, kStart + milliseconds{10}).closed_until;
  EXPECT_EQ(policy.decide(end, end + milliseconds{5}).look_again, kOpen);
}

TEST(GatePolicy, opened_early_it_need_stay_open_only_for_so_long) {
  GatePolicy policy;
  ASSERT_NE(policy.decide(kStart, kStart + milliseconds{40}).closed_until, kOpen);
  const auto opened = kStart + milliseconds{2};
  ASSERT_EQ(policy.decide(opened, kOpen).closed_until, kOpen);
  EXPECT_NE(policy.decide(opened + milliseconds{2}, opened + milliseconds{9}).closed_until, kOpen);
}

TEST(GatePolicy, whatever_is_wished_it_is_open_half_of_the_time) {
  std::mt19937_64 random(1);
  GatePolicy policy;
  Nanoseconds closed{0};
  Nanoseconds until{0};
  Nanoseconds now = kStart;
  for (int i = 0; i < 20'000; i++) {
    const Nanoseconds step{static_cast<std::int64_t>(random() % 20'000'000)};
    closed += std::clamp(until - now, kOpen, step);
    now += step;
    const Nanoseconds wish = now + Nanoseconds{static_cast<std::int64_t>(random() % 200'000'000)};
    until = policy.decide(now, random() % 4 == 0 ? kOpen : wish).closed_until;
    ASSERT_LE(until, now + kMaxGate);
  }
  EXPECT_LE(closed, (now - kStart) / 2 + kMaxGate);
}

TEST(Gate, lets_everybody_pass_while_it_is_open) {
  Gate gate;
  gate.pass();
  EXPECT_EQ(gate.waits(), 0U);
}

TEST(Gate, opens_by_itself_when_its_time_is_over) {
  Gate gate;
  const Nanoseconds until = monotonic_now() + milliseconds{5};
  gate.close_until(until);
  gate.pass();
  EXPECT_GE(monotonic_now(), until);
  EXPECT_EQ(gate.waits(), 1U);
  EXPECT_GT(gate.waited(), kOpen);
}

TEST(Gate, releases_all_who_wait_when_it_is_opened) {
  Gate gate;
  std::atomic<int> passed{0};
  std::atomic<bool> is_over{false};
  std::vector<std::thread> passers;
  // Closed again and again, so that they wait however slow this machine is.
  for (int i = 0; i < 4; i++) {
    passers.emplace_back([&] {
      while (!is_over) {
        gate.pass();
        passed++;
      }
    });
  }
  EXPECT_TRUE(fake::eventually([&] {
    gate.close_until(monotonic_now() + kMaxGate);
    return gate.waits() > 8;
  }));
  is_over = true;
  gate.close_until(kOpen);
  for (auto& passer : passers) passer.join();
  EXPECT_GT(passed, 0);
}

}  // namespace
}  // namespace apusched::agent
