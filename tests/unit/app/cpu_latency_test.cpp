// SPDX-License-Identifier: MIT
#include "app/cpu_latency.hpp"

#include <gtest/gtest.h>

#include "doubles/fake_idle_latency.hpp"
#include "doubles/fake_ports.hpp"
#include "doubles/fake_power.hpp"

namespace apusched::app {
namespace {

using namespace std::chrono_literals;
using core::IdleLimit;
using core::Outcome;
constexpr auto kFirstHolder = core::RegistrationId::of<1>();
constexpr auto kSecondHolder = core::RegistrationId::of<2>();
constexpr auto kLimit = IdleLimit::of<20>();

class CpuLatencyTest : public ::testing::Test {
 protected:
  CpuLatency& lever(bool dry_run = false) {
    return lever_.emplace(&idle_, saving_, loop_, config_, dry_run);
  }

  doubles::FakeIdleLatency idle_;
  doubles::FakePower power_;
  doubles::FakeLoop loop_;
  PowerSaving saving_{&power_, loop_};
  core::Config config_ = core::default_config();
  std::optional<CpuLatency> lever_;
};

TEST_F(CpuLatencyTest, the_strictest_limit_counts_and_the_last_holder_ends_it) {
  auto& lever = this->lever();
  lever.hold(kFirstHolder, IdleLimit::of<50>());
  EXPECT_EQ(idle_.in_force, 50U);
  lever.hold(kSecondHolder, kLimit);
  EXPECT_EQ(idle_.in_force, 20U);
  lever.release(kSecondHolder);
  EXPECT_EQ(idle_.in_force, 50U);
  lever.release(kFirstHolder);
  EXPECT_FALSE(idle_.in_force);
}

TEST_F(CpuLatencyTest, the_same_limit_is_not_written_again) {
  auto& lever = this->lever();
  lever.hold(kFirstHolder, kLimit);
  lever.hold(kFirstHolder, kLimit);
  lever.hold(kSecondHolder, kLimit);
  EXPECT_EQ(idle_.asked, 1);
}

TEST_F(CpuLatencyTest, says_where_no_idle_state_is_deeper_than_the_limit) {
  idle_.state = ports::IdleState{"C2", 18us};
  EXPECT_EQ(lever().why_not(kLimit),
            "no idle state takes longer to leave: the deepest, C2, takes 18 µs");
  EXPECT_EQ(lever().status(kFirstHolder, kLimit).outcome, Outcome::unsupported);
}

TEST_F(CpuLatencyTest, notices_a_deeper_state_that_is_enabled_later) {
  idle_.state = core::fail(core::ErrorCode::unsupported, "read", "cpuidle", "there is none");
  auto& lever = this->lever();
  EXPECT_EQ(lever.why_not(kLimit), "there is none");
  idle_.state = ports::IdleState{"C3", 350us};
  loop_.advance(6s);
  EXPECT_EQ(lever.why_not(kLimit), "");
}

TEST_F(CpuLatencyTest, is_not_for_a_machine_that_saves_power_unless_that_is_configured) {
  power_.saves = true;
  EXPECT_NE(lever().why_not(kLimit).find("save power"), std::string::npos);
  EXPECT_EQ(lever().status(kFirstHolder, kLimit).outcome, Outcome::standby);
  config_.control.level_on_battery = true;
  EXPECT_EQ(lever().why_not(kLimit), "");
}

TEST_F(CpuLatencyTest, a_refusal_is_told_and_not_repeated_before_its_time) {
  idle_.error = core::Error{core::ErrorCode::denied, "open", "/dev/cpu_dma_latency", "no"};
  auto& lever = this->lever();
  lever.hold(kFirstHolder, kLimit);
  EXPECT_FALSE(idle_.in_force);
  EXPECT_NE(lever.why_not(kLimit), "");
  EXPECT_EQ(lever.status(kFirstHolder, kLimit).outcome, Outcome::denied);
  loop_.advance(config_.control.retry_after);
  EXPECT_EQ(lever.why_not(kLimit), "");
}

TEST_F(CpuLatencyTest, a_dry_run_asks_for_nothing) {
  auto& lever = this->lever(true);
  EXPECT_NE(lever.why_not(kLimit), "");
  EXPECT_EQ(lever.status(kFirstHolder, kLimit).outcome, Outcome::dry_run);
  lever.hold(kFirstHolder, kLimit);
  EXPECT_EQ(idle_.asked, 0);
}

}  // namespace
}  // namespace apusched::app
