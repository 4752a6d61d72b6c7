// SPDX-License-Identifier: MIT
// The guard program itself, on a tree of plain files that stands for the cgroup v2 tree.
#include "platform/freezer_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <systemd/sd-event.h>

#include "platform/sd_event_loop.hpp"
#include "unit/temporary_tree.hpp"

namespace apusched::platform {
namespace {

using namespace std::chrono_literals;
using core::ErrorCode;
using core::FrozenShare;
using ::testing::HasSubstr;

constexpr auto kHalf = FrozenShare::of<50>();
constexpr auto kRunning = FrozenShare::of<0>();
const std::string kUnit = "/system.slice/indexer.service";
const std::string kState = "system.slice/indexer.service/cgroup.freeze";

class FreezerProcessTest : public ::testing::Test {
 protected:
  FreezerProcessTest() {
    tree_.write(kState, "0");
    loop_ = *SdEventLoop::create();
  }
  void start(const std::string& program = APUSCHED_FREEZER) {
    freezer_ = std::make_unique<FreezerProcess>(*loop_, FreezerOptions{program, tree_.root()});
    freezer_->on_foreign([this](const std::string& unit, FrozenShare found) {
      foreign_ = unit + " " + core::to_string(found);
    });
  }
  /// Lets the loop turn until it is so; false after ten seconds.
  [[nodiscard]] bool until(const std::function<bool()>& condition) {
    const auto end = loop_->now() + 10s;
    bool met = false;
    while (!(met = condition()) && loop_->now() < end) {
      constexpr std::uint64_t kLookAgainUsec = 2000;
      EXPECT_GE(::sd_event_run(loop_->native(), kLookAgainUsec), 0);
    }
    return met;
  }
  [[nodiscard]] bool stopped() const { return tree_.read(kState) == "1"; }
  [[nodiscard]] bool alternates() {
    return until([this] { return stopped(); }) && until([this] { return !stopped(); }) &&
           until([this] { return stopped(); });
  }
  core::Result<void> set(FrozenShare share, const std::string& unit = kUnit) {
    std::optional<core::Result<void>> answer;
    freezer_->set(unit, share, [&](core::Result<void> result) { answer = std::move(result); });
    EXPECT_TRUE(until([&] { return answer.has_value(); }));
    return answer.value_or(core::fail(ErrorCode::timed_out, "set", unit, "no answer"));
  }

  tests::TemporaryTree tree_;
  std::unique_ptr<SdEventLoop> loop_;
  std::unique_ptr<FreezerProcess> freezer_;
  std::string foreign_;
};

TEST_F(FreezerProcessTest, stops_and_lets_run_by_turns_until_it_is_told_otherwise) {
  start();
  ASSERT_TRUE(set(kHalf));
  EXPECT_TRUE(alternates());
  ASSERT_TRUE(set(kRunning));
  EXPECT_FALSE(stopped());
  EXPECT_EQ(freezer_->guard_pid(), std::nullopt);
}

TEST_F(FreezerProcessTest, everything_runs_again_when_the_daemon_is_gone) {
  start();
  ASSERT_TRUE(set(kHalf));
  ASSERT_TRUE(until([this] { return stopped(); }));
  freezer_.reset();
  EXPECT_TRUE(until([this] { return !stopped(); }));
}

TEST_F(FreezerProcessTest, everything_runs_again_when_the_guard_is_killed_and_another_takes_over) {
  start();
  ASSERT_TRUE(set(kHalf));
  ASSERT_TRUE(until([this] { return stopped(); }));
  const int first = *freezer_->guard_pid();
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  EXPECT_TRUE(until([this] { return !stopped(); }));
  EXPECT_TRUE(until([&] { return freezer_->guard_pid().value_or(first) != first; }));
  EXPECT_TRUE(alternates());
}

TEST_F(FreezerProcessTest, gives_up_after_three_guards_and_says_so) {
  start();
  ASSERT_TRUE(set(kHalf));
  int last = 0;
  for (int times = 0; times < 3; ++times) {
    ASSERT_TRUE(until([&] { return freezer_->guard_pid().value_or(last) != last; }));
    last = *freezer_->guard_pid();
    ASSERT_EQ(::kill(last, SIGKILL), 0);
  }
  EXPECT_TRUE(until([this] { return !freezer_->why_not().empty(); }));
  EXPECT_FALSE(stopped());
  const auto refused = set(kHalf);
  ASSERT_FALSE(refused);
  EXPECT_THAT(core::to_sentence(refused.error()), HasSubstr("3 times within a minute"));
  EXPECT_TRUE(set(kRunning)) << "letting run needs no guard";
}

TEST_F(FreezerProcessTest, a_guard_that_gets_a_signal_to_end_lets_everything_run) {
  start();
  ASSERT_TRUE(set(kHalf));
  ASSERT_TRUE(until([this] { return stopped(); }));
  ASSERT_EQ(::kill(*freezer_->guard_pid(), SIGTERM), 0);
  EXPECT_TRUE(until([this] { return !stopped(); }));
}

TEST_F(FreezerProcessTest, everything_runs_again_when_the_daemon_goes_silent) {
  start();
  ASSERT_TRUE(set(kHalf));
  ASSERT_TRUE(until([this] { return stopped(); }));
  // The loop does not turn now: no renewals. Twice in a row, because it takes turns.
  const auto end = std::chrono::steady_clock::now() + 20s;
  int running = 0;
  while (running < 100 && std::chrono::steady_clock::now() < end) {
    running = stopped() ? 0 : running + 1;
    ::poll(nullptr, 0, 2);
  }
  EXPECT_EQ(running, 100) << "more than a period in which it was not stopped";
}

TEST_F(FreezerProcessTest, what_somebody_else_froze_is_left_to_them) {
  tree_.write(kState, "1");
  start();
  const auto refused = set(kHalf);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::contended);
  EXPECT_TRUE(stopped());
}

TEST_F(FreezerProcessTest, somebody_who_thaws_what_we_stopped_is_noticed_and_left_alone) {
  start();
  ASSERT_TRUE(set(FrozenShare::of<90>()));
  ASSERT_TRUE(until([this] {
    if (!stopped()) return false;
    tree_.write(kState, "0");
    return true;
  }));
  EXPECT_TRUE(until([this] { return !foreign_.empty(); }));
  EXPECT_EQ(foreign_, kUnit + " 0");
  EXPECT_FALSE(stopped());
}

TEST_F(FreezerProcessTest, a_unit_that_is_gone_or_has_no_freezer_is_said) {
  start();
  const auto gone = set(kHalf, "/system.slice/gone.service");
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::gone);
  tree_.write("system.slice/old.service/cgroup.procs", "");
  const auto old = set(kHalf, "/system.slice/old.service");
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().code, ErrorCode::unsupported);
  EXPECT_THAT(old.error().detail, HasSubstr("cgroup v2"));
  EXPECT_FALSE(set(kHalf, "/../../etc"));
}

TEST_F(FreezerProcessTest, nothing_is_reached_through_a_symbolic_link) {
  tests::TemporaryTree other;
  other.write("cgroup.freeze", "0");
  std::filesystem::create_directory_symlink(other.root(), tree_.path("link.service"));
  start();
  EXPECT_FALSE(set(kHalf, "/link.service"));
  EXPECT_EQ(other.read("cgroup.freeze"), "0");
}

TEST_F(FreezerProcessTest, a_guard_that_cannot_be_started_is_named) {
  start("/nonexistent/apusched-freezer");
  const auto refused = set(kHalf);
  ASSERT_FALSE(refused);
  EXPECT_THAT(core::to_sentence(refused.error()), HasSubstr("/nonexistent/apusched-freezer"));
  EXPECT_FALSE(stopped());
}

TEST_F(FreezerProcessTest, one_that_is_no_guard_is_ended_and_nothing_is_held) {
  start("/bin/cat");  // ends at once: it does not know --fd
  EXPECT_FALSE(set(kHalf));
  EXPECT_FALSE(stopped());
}

}  // namespace
}  // namespace apusched::platform
