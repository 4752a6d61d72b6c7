// SPDX-License-Identifier: MIT
#include "platform/pm_qos_latency.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "unit/temporary_tree.hpp"

namespace apusched::platform {
namespace {

using std::chrono::microseconds;
constexpr auto kTwenty = core::IdleLimit::of<20>();

/// The device is a plain file: what it holds is the number that was written last.
class PmQosLatencyTest : public ::testing::Test {
 protected:
  void state(int index, const std::string& name, const std::string& latency,
             const std::string& disable = "0") {
    const auto folder = "devices/system/cpu/cpu0/cpuidle/state" + std::to_string(index);
    tree_.write(folder + "/name", name + "\n");
    tree_.write(folder + "/latency", latency + "\n");
    tree_.write(folder + "/disable", disable + "\n");
  }
  PmQosLatency latency() { return {tree_.root() + "/device", tree_.root()}; }
  std::int32_t written() {
    std::int32_t value = -1;
    std::ifstream(tree_.root() + "/device", std::ios::binary)
        .read(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  }

  tests::TemporaryTree tree_;
};

TEST_F(PmQosLatencyTest, writes_four_bytes_and_replaces_them) {
  tree_.write("device", "");
  auto latency = this->latency();
  ASSERT_TRUE(latency.limit(kTwenty));
  EXPECT_EQ(written(), 20);
  ASSERT_TRUE(latency.limit(core::IdleLimit::of<0>()));
  EXPECT_EQ(written(), 0);
  EXPECT_EQ(std::filesystem::file_size(tree_.root() + "/device"), 4U);
}

TEST_F(PmQosLatencyTest, a_device_that_is_not_there_is_an_error_and_is_not_made) {
  auto latency = this->latency();
  EXPECT_FALSE(latency.limit(kTwenty));
  EXPECT_FALSE(std::filesystem::exists(tree_.root() + "/device"));
}

TEST_F(PmQosLatencyTest, a_device_that_does_not_take_the_number_is_an_error) {
  PmQosLatency latency("/dev/null", tree_.root());
  const auto done = latency.limit(kTwenty);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, core::ErrorCode::failed);
}

TEST_F(PmQosLatencyTest, finds_the_state_that_takes_longest_to_leave_of_those_enabled) {
  state(0, "POLL", "0");
  state(1, "C1", "1");
  state(2, "C2", "18");
  state(3, "C3", "350", "1");
  const auto deepest = latency().deepest();
  ASSERT_TRUE(deepest);
  EXPECT_EQ(deepest->name, "C2");
  EXPECT_EQ(deepest->exit, microseconds(18));
}

TEST_F(PmQosLatencyTest, a_machine_without_idle_states_says_so) {
  const auto deepest = latency().deepest();
  ASSERT_FALSE(deepest);
  EXPECT_EQ(deepest.error().code, core::ErrorCode::unsupported);
}

TEST_F(PmQosLatencyTest, text_that_is_no_number_or_no_name_does_no_harm) {
  state(0, "C\x1b[1m", "7");
  state(1, "C2", "many");
  const auto deepest = latency().deepest();
  ASSERT_TRUE(deepest);
  EXPECT_EQ(deepest->name, "state0");
  EXPECT_EQ(deepest->exit, microseconds(7));
}

}  // namespace
}  // namespace apusched::platform
