// SPDX-License-Identifier: MIT
#include "unit/app/service_fixture.hpp"

namespace apusched::app {
namespace {

using Values = std::vector<int>;
class Scan : public ServiceTest {};

TEST_F(Scan, looks_at_a_process_only_where_something_can_have_changed) {
  start();
  auto& process = world_.add(50);
  const auto id = added(50);
  process.asleep = true;
  scan();
  world_.threads_listed = 0;
  for (int i = 0; i < 10; ++i) scan();
  EXPECT_EQ(world_.threads_listed, 0);
  world_.add_thread(50, 51, 0);
  process.activity += 1;  // what it was born in has run
  scan();
  EXPECT_EQ(world_.nices(50), (Values{-10, -10}));
  world_.thread(50)->nice = 7;  // by somebody else, while it sleeps
  for (int i = 0; i < 20; ++i) scan();
  EXPECT_NE(lever(id, LeverKind::nice)->detail.find("somebody else"), std::string::npos);
}

TEST_F(Scan, a_thread_born_before_its_first_scan_is_not_missed) {
  start();
  auto& process = world_.add(50);
  process.asleep = true;
  added(50);
  world_.add_thread(50, 51, 0);
  scan();
  EXPECT_EQ(world_.nices(50), (Values{-10, -10}));
}

TEST_F(Scan, many_that_work_are_looked_at_in_turns) {
  start();
  config_.limits.max_processes = 4096;
  for (int pid = 100; pid < 1100; ++pid) {
    world_.add(pid);
    if (pid < 356) added(pid, "background");
  }
  world_.threads_listed = 0;
  scan();
  const auto once = world_.threads_listed;
  EXPECT_LE(once, 130);
  scan();
  scan();
  for (int pid = 100; pid < 356; ++pid) world_.add_thread(pid, pid + 5000, 0);
  scan();
  scan();
  scan();
  for (int pid = 100; pid < 356; ++pid) EXPECT_EQ(world_.nices(pid), (Values{10, 10})) << pid;
}

}  // namespace
}  // namespace apusched::app
