// SPDX-License-Identifier: MIT
#include "core/launch_environment.hpp"

#include <gtest/gtest.h>

namespace apusched::core {
namespace {

using Environment = std::map<std::string, std::string>;

Profile limited() {
  Profile profile;
  profile.serial = true;
  profile.queue_limit = QueueLimit::of<2>();
  profile.memory_limit = MebiBytes::of<4096>();
  profile.cu_limit_percent = Percent::of<50>();
  return profile;
}

LaunchOptions options(bool agent) {
  return {agent, "/usr/lib/agent.so", {}, {{12, 1, 2, 1, true}, {40, 2, 2, 1, true}}};
}

TEST(LaunchEnvironment, of_a_plain_profile_is_the_agent_alone) {
  EXPECT_EQ(launch_environment({}, options(true)),
            (Environment{{"HSA_TOOLS_LIB", "/usr/lib/agent.so"}}));
  EXPECT_TRUE(launch_environment({}, options(false)).empty());
}

TEST(LaunchEnvironment, tells_the_agent_what_must_be_there_before_the_first_queue) {
  EXPECT_EQ(launch_environment(limited(), options(true)),
            (Environment{{"APUSCHED_MEMORY_LIMIT_MIB", "4096"},
                         {"APUSCHED_QUEUE_LIMIT", "2"},
                         {"APUSCHED_SERIAL", "1"},
                         {"GPU_MAX_HW_QUEUES", "2"},
                         {"HSA_TOOLS_LIB", "/usr/lib/agent.so"}}));
}

TEST(LaunchEnvironment, without_agent_uses_what_the_runtimes_themselves_take) {
  EXPECT_EQ(launch_environment(limited(), options(false)),
            (Environment{{"AMD_SERIALIZE_KERNEL", "3"},
                         {"GPU_MAX_HW_QUEUES", "2"},
                         {"HSA_CU_MASK", "0:0-5;1:0-19"}}));
}

TEST(LaunchEnvironment, names_the_socket_where_it_is_not_the_usual_one) {
  auto elsewhere = options(true);
  elsewhere.agent_socket = "/tmp/agent.sock";
  EXPECT_EQ(launch_environment({}, elsewhere).at("APUSCHED_AGENT_SOCKET"), "/tmp/agent.sock");
}

TEST(LaunchEnvironment, keeps_a_path_with_a_blank_together) {
  auto blank = options(true);
  blank.agent_library = "/opt/a b/agent.so";
  EXPECT_EQ(launch_environment({}, blank).at("HSA_TOOLS_LIB"), "\"/opt/a b/agent.so\"");
}

}  // namespace
}  // namespace apusched::core
