// SPDX-License-Identifier: MIT
#include "platform/proc_parse.hpp"

#include <gtest/gtest.h>

#include "platform/procfs_meters.hpp"

namespace apusched::platform {
namespace {

std::string stat_text(const std::string& comm, const std::string& nice = "-10",
                      const std::string& start = "12345", const std::string& flags = "4194304") {
  return "42 (" + comm + ") S 7 42 42 0 -1 " + flags + " 1 2 3 4 5 6 7 8 20 " + nice + " 3 0 " +
         start + " 1000 200\n";
}

TEST(ParseStat, reads_the_fields_behind_the_name) {
  const auto stat = parse_stat(stat_text("engine"));
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->comm, "engine");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->nice, core::Nice::of<-10>());
  EXPECT_EQ(stat->start.ticks, 12345U);
  EXPECT_FALSE(stat->kernel_thread);
}

TEST(ParseStat, a_name_may_hold_anything_also_what_looks_like_fields) {
  for (const auto* comm : {"a) R 1 (b", ") S 1 1 1 1 1 1", "new\nline", "", "((("}) {
    const auto stat = parse_stat(stat_text(comm));
    ASSERT_TRUE(stat) << comm;
    EXPECT_EQ(stat->comm, comm);
    EXPECT_EQ(stat->start.ticks, 12345U);
  }
}

TEST(ParseStat, knows_a_kernel_thread_by_its_flag) {
  EXPECT_TRUE(parse_stat(stat_text("kthreadd", "0", "1", "2129984"))->kernel_thread);
}

TEST(ParseStat, malformed_text_is_no_value) {
  for (const auto& text :
       {std::string(), std::string("42"), std::string("42 (x"), std::string("42 )x("),
        std::string("42 (x) S 1 2"), stat_text("x", "-21"), stat_text("x", "5x"),
        stat_text("x", "0", "-1"), stat_text("x", "0", "99999999999999999999")})
    EXPECT_FALSE(parse_stat(text)) << text;
}

TEST(ParseAutogroup, reads_name_and_nice) {
  const auto group = parse_autogroup("/autogroup-88 nice -10\n");
  ASSERT_TRUE(group);
  EXPECT_EQ(group->name, "/autogroup-88");
  EXPECT_EQ(group->nice, core::Nice::of<-10>());
}

TEST(ParseAutogroup, malformed_text_is_no_value) {
  for (const auto* text : {"", "/autogroup-88", "/autogroup-x nice 0", "/autogroup- nice 0",
                           "/other-8 nice 0", "/autogroup-8 nice 20", "/autogroup-8 mice 0"})
    EXPECT_FALSE(parse_autogroup(text)) << text;
}

TEST(ParseCgroup, tells_v2_v1_and_hybrid_apart) {
  const auto v2 = parse_cgroup("0::/system.slice/llama.service\n");
  EXPECT_EQ(v2.unified, "/system.slice/llama.service");
  EXPECT_FALSE(v2.cpu_v1);
  const auto hybrid =
      parse_cgroup("5:cpu,cpuacct:/work\n3:cpuset:/set\n1:name=systemd:/x\n0::/x\n");
  EXPECT_EQ(hybrid.cpu_v1, "/work");
  EXPECT_EQ(hybrid.unified, "/x");
}

TEST(ParseCgroup, cpuset_and_cpuacct_are_not_the_cpu_controller) {
  EXPECT_FALSE(parse_cgroup("3:cpuset:/set\n2:cpuacct:/acct\n").cpu_v1);
}

TEST(ParseCgroup, a_path_out_of_the_hierarchy_is_no_value) {
  for (const auto* text : {"0::/../../etc\n", "0::/a/..\n", "0::relative\n", "0:\n", "::", ""})
    EXPECT_FALSE(parse_cgroup(text).unified) << text;
}

TEST(ParseCgroup, a_path_may_hold_colons) {
  EXPECT_EQ(parse_cgroup("0::/a:b:c\n").unified, "/a:b:c");
}

TEST(ParsePidfdInfo, tells_a_living_process_from_a_reaped_one_and_a_plain_file) {
  EXPECT_EQ(parse_pidfd_info("pos:\t0\nflags:\t02\nPid:\t4711\nNSpid:\t4711\n")->value(), 4711);
  EXPECT_FALSE(parse_pidfd_info("pos:\t0\nPid:\t-1\n"));
  EXPECT_FALSE(parse_pidfd_info("pos:\t0\nPid:\t0\n"));
  EXPECT_FALSE(parse_pidfd_info("pos:\t0\nflags:\t02\n"));
}

TEST(ParseSmallTexts, take_what_is_whole_and_nothing_else) {
  EXPECT_EQ(parse_schedstat_run("123456 789 10\n"), 123456U);
  EXPECT_FALSE(parse_schedstat_run("-1 2 3"));
  EXPECT_FALSE(parse_schedstat_run(""));
  EXPECT_EQ(parse_children("12 0 -4 x 34 ").size(), 2U);
  EXPECT_EQ(parse_status_uid("Name:\tx\nUid:\t1000\t1000\t1000\t1000\n"), 1000U);
  EXPECT_FALSE(parse_status_uid("Name:\tUid:\t0\n"));
  EXPECT_FALSE(parse_status_uid("Uid:\t-1\n"));
  EXPECT_EQ(parse_status_tgid("Name:\tx\nTgid:\t42\n")->value(), 42);
}

TEST(ParseMachineStat, adds_up_what_the_machine_has_done) {
  const auto times = parse_machine_stat("cpu 10 20 30 400 5 6 7 8 0 0\n", 100);
  ASSERT_TRUE(times);
  EXPECT_EQ(times->all, std::chrono::milliseconds(4860));
  EXPECT_EQ(times->busy, std::chrono::milliseconds(810));
}

TEST(ParseMachineStat, of_more_than_time_can_hold_is_none) {
  EXPECT_FALSE(parse_machine_stat("cpu 99 66 86 6 16 1999999999999 599 5", 100));
}

TEST(ParseLoadavg, reads_how_many_threads_are_runnable) {
  EXPECT_EQ(parse_runnable("0.20 0.18 0.12 7/80 11206\n"), 7U);
  for (const auto* text : {"", "0.20 0.18 0.12", "0.20 0.18 0.12 7", "0.20 0.18 0.12 -1/80 1",
                           "0.20 0.18 0.12 4294967296/80 1", "a b c d/e"})
    EXPECT_FALSE(parse_runnable(text)) << text;
}

}  // namespace
}  // namespace apusched::platform
