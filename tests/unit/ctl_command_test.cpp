// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "ctl/command.hpp"
#include "ctl_sample_views.hpp"

namespace apusched::ctl {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

class Command : public testing::Test {
 protected:
  /// Runs a command line against the fake daemon.
  Outcome<void> run(std::vector<std::string> words, bool as_json = false) {
    CLI::App app;
    Action action;
    add_status(app, action);
    add_list(app, action);
    add_register(app, action);
    add_unregister(app, action);
    add_gpu(app, action);
    add_probe(app, action);
    add_run(app, action);
    add_explain(app, action);
    add_history(app, action);
    std::ranges::reverse(words);  // CLI11 takes them last first
    app.parse(words);
    out_.str("");
    notes_.str("");
    started_.clear();
    Session session{daemon_,
                    out_,
                    Style(false),
                    as_json,
                    false,
                    notes_,
                    [this](const std::vector<std::string>& command, const Environment& set) {
                      started_ = command;
                      set_ = set;
                      return Failure{ExitCode::command_not_found, "a test starts nothing"};
                    },
                    [this](std::chrono::milliseconds time) { paused_ += time; }};
    return action(session);
  }
  [[nodiscard]] nlohmann::json json() const { return nlohmann::json::parse(out_.str()); }

  FakeDaemon daemon_;
  std::ostringstream out_;
  std::ostringstream notes_;
  std::vector<std::string> started_;
  Environment set_;
  std::chrono::milliseconds paused_{0};
};

TEST_F(Command, status_writes_text_or_json) {
  ASSERT_TRUE(run({"status"}));
  EXPECT_THAT(out_.str(), HasSubstr("apuschedd 0.1.0: active"));
  ASSERT_TRUE(run({"status"}, true));
  EXPECT_EQ(json()["processes"][0]["pid"], 4711);
}

TEST_F(Command, gpu_asks_for_fresh_readings_and_probe_does_not) {
  ASSERT_TRUE(run({"gpu"}, true));
  EXPECT_TRUE(daemon_.asked_fresh);
  ASSERT_TRUE(run({"probe"}, true));
  EXPECT_FALSE(daemon_.asked_fresh);
  EXPECT_EQ(json()["gpus"][0]["dispatch_latency"]["queue"]["p99_ns"], 45000);
}

TEST_F(Command, register_passes_pid_profile_and_children_and_shows_the_levers) {
  ASSERT_TRUE(run({"register", "4711", "--profile", "llm-interactive", "--include-children"}));
  EXPECT_EQ(daemon_.registered, std::tuple(4711U, std::string("llm-interactive"), true));
  EXPECT_THAT(out_.str(), HasSubstr("nice        applied"));
  ASSERT_TRUE(run({"register", "4711", "-p", "background"}, true));
  EXPECT_EQ(daemon_.registered, std::tuple(4711U, std::string("background"), false));
  EXPECT_EQ(json()["process"]["pid"], 4711);
}

TEST_F(Command, register_says_when_the_process_ended_meanwhile) {
  daemon_.status.processes.clear();
  const auto done = run({"register", "4711", "-p", "background"});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ExitCode::not_found);
}

TEST_F(Command, register_needs_a_profile_and_a_possible_pid) {
  EXPECT_THROW(static_cast<void>(run({"register", "4711"})), CLI::RequiredError);
  for (const char* pid : {"0", "-1", "2147483648", "12x", "self", ""})
    EXPECT_THROW(static_cast<void>(run({"register", "-p", "background", "--", pid})),
                 CLI::ParseError)
        << pid;
}

TEST_F(Command, run_registers_itself_and_starts_the_program_with_the_agent) {
  const auto done = run({"run", "--profile", "llm-server", "--", "engine", "--port", "80"});
  ASSERT_FALSE(done);  // only exec ends it otherwise
  EXPECT_EQ(done.error().code, ExitCode::command_not_found);
  EXPECT_THAT(started_, ElementsAre("engine", "--port", "80"));
  EXPECT_EQ(set_, daemon_.environment);
  EXPECT_EQ(daemon_.registered,
            std::tuple(static_cast<std::uint32_t>(getpid()), std::string("llm-server"), true));
  EXPECT_TRUE(daemon_.expect_agent);
}

TEST_F(Command, run_without_agent_expects_none) {
  ASSERT_FALSE(run({"run", "--no-agent", "engine"}));
  EXPECT_THAT(started_, ElementsAre("engine"));
  EXPECT_TRUE(set_.empty());
  EXPECT_FALSE(daemon_.expect_agent);
}

TEST_F(Command, run_starts_nothing_where_the_daemon_refuses_unless_best_effort_will_do) {
  daemon_.failure = Failure{ExitCode::unreachable, "apuschedd is not running"};
  const auto refused = run({"run", "engine"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), *daemon_.failure);
  EXPECT_TRUE(started_.empty());
  ASSERT_FALSE(run({"run", "--best-effort", "engine"}));
  EXPECT_THAT(started_, ElementsAre("engine"));
  EXPECT_THAT(notes_.str(), HasSubstr("apuschedd is not running; started without"));
}

TEST_F(Command, run_waits_until_there_is_room_for_a_background_program) {
  daemon_.admissions = {{false, 30s, "process 7 misses its target"},
                        {false, 30s, "process 7 misses its target"}};
  ASSERT_FALSE(run({"run", "-p", "background", "indexer"}));
  EXPECT_THAT(daemon_.admission_asked, ElementsAre("background", "background", "background"));
  EXPECT_EQ(paused_, 1s);
  EXPECT_THAT(notes_.str(), HasSubstr("waiting for at most 30 s"));
  EXPECT_THAT(notes_.str(), HasSubstr("process 7 misses its target"));
  EXPECT_THAT(started_, ElementsAre("indexer"));
}

TEST_F(Command, run_does_not_wait_for_ever) {
  daemon_.admissions.assign(100, {false, 2s, "process 7 misses its target"});
  ASSERT_FALSE(run({"run", "-p", "background", "indexer"}));
  EXPECT_EQ(paused_, 2s);
  EXPECT_THAT(notes_.str(), HasSubstr("started all the same"));
  EXPECT_THAT(started_, ElementsAre("indexer"));
}

TEST_F(Command, run_now_does_not_ask) {
  daemon_.admissions.assign(100, {false, 2s, "process 7 misses its target"});
  ASSERT_FALSE(run({"run", "--now", "-p", "background", "indexer"}));
  EXPECT_TRUE(daemon_.admission_asked.empty());
  EXPECT_THAT(started_, ElementsAre("indexer"));
}

TEST_F(Command, run_needs_a_command) {
  EXPECT_THROW(static_cast<void>(run({"run"})), CLI::RequiredError);
}

TEST_F(Command, explain_writes_text_or_json) {
  ASSERT_TRUE(run({"explain", "4711"}));
  EXPECT_THAT(out_.str(), HasSubstr("applied to 4711"));
  ASSERT_TRUE(run({"explain", "4711"}, true));
  EXPECT_EQ(json()["lines"][0]["what"], "nice");
}

TEST_F(Command, history_writes_as_many_lines_as_asked_for) {
  ASSERT_TRUE(run({"history", "-n", "2"}));
  EXPECT_EQ(std::ranges::count(out_.str(), '\n'), 2);
  EXPECT_THAT(out_.str(),
              HasSubstr("autogroup kept  it helped (waits: 2500 µs before, 40 µs after)"));
  ASSERT_TRUE(run({"history", "-n", "1"}, true));
  EXPECT_EQ(json()["lines"][0]["lever"], "autogroup");
}

Lookup environment_of(std::map<std::string, std::string> variables) {
  return [variables](const std::string& name) -> std::optional<std::string_view> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string_view>(found->second);
  };
}

TEST(PlanLaunch, sets_what_nobody_has_set) {
  EXPECT_EQ(plan_launch({{"GPU_MAX_HW_QUEUES", "2"}}, environment_of({})),
            (LaunchPlan{{{"GPU_MAX_HW_QUEUES", "2"}}, {}}));
}

TEST(PlanLaunch, keeps_what_somebody_has_set_and_says_so) {
  const auto plan =
      plan_launch({{"GPU_MAX_HW_QUEUES", "2"}}, environment_of({{"GPU_MAX_HW_QUEUES", "4"}}));
  EXPECT_TRUE(plan.set.empty());
  EXPECT_THAT(plan.notes, ElementsAre(HasSubstr("GPU_MAX_HW_QUEUES=4 is kept")));
}

TEST(PlanLaunch, loads_the_agent_after_other_tools_and_once) {
  const Environment wanted{{"HSA_TOOLS_LIB", "agent.so"}};
  EXPECT_EQ(plan_launch(wanted, environment_of({{"HSA_TOOLS_LIB", "prof.so"}})).set,
            (Environment{{"HSA_TOOLS_LIB", "prof.so agent.so"}}));
  EXPECT_EQ(plan_launch(wanted, environment_of({{"HSA_TOOLS_LIB", "agent.so prof.so"}})).set,
            (Environment{{"HSA_TOOLS_LIB", "agent.so prof.so"}}));
}

TEST(PlanLaunch, numbers_no_gpus_where_some_are_hidden) {
  const auto plan =
      plan_launch({{"HSA_CU_MASK", "0:0-3"}}, environment_of({{"ROCR_VISIBLE_DEVICES", "1"}}));
  EXPECT_TRUE(plan.set.empty());
  EXPECT_THAT(plan.notes, ElementsAre(HasSubstr("ROCR_VISIBLE_DEVICES")));
}

TEST(Launch, says_why_a_program_cannot_be_started) {
  EXPECT_EQ(launch({"/nonexistent/engine"}, {}).code, ExitCode::command_not_found);
  EXPECT_EQ(launch({"/"}, {}).code, ExitCode::command_not_started);
}

TEST_F(Command, unregister_releases_every_registration_of_the_pid) {
  auto second = sample_process();
  second.object_path = "/org/apusched1/process/2";
  auto other = sample_process();
  other.pid = 5;
  daemon_.status.processes.push_back(second);
  daemon_.status.processes.push_back(other);
  ASSERT_TRUE(run({"unregister", "4711"}));
  EXPECT_THAT(daemon_.released,
              ElementsAre("/org/apusched1/process/1", "/org/apusched1/process/2"));
}

TEST_F(Command, unregister_of_a_process_that_is_not_registered_is_not_found) {
  const auto done = run({"unregister", "99"});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ExitCode::not_found);
  EXPECT_THAT(done.error().sentence, HasSubstr("apuschedctl list"));
}

TEST_F(Command, every_command_hands_on_what_the_daemon_says) {
  daemon_.failure = Failure{ExitCode::denied, "no"};
  for (const std::vector<std::string>& words : {std::vector<std::string>{"status"},
                                                {"list"},
                                                {"gpu"},
                                                {"probe"},
                                                {"unregister", "1"},
                                                {"register", "1", "-p", "x"}}) {
    const auto done = run(words);
    ASSERT_FALSE(done) << words.front();
    EXPECT_EQ(done.error(), *daemon_.failure);
    EXPECT_EQ(out_.str(), "");
  }
}

TEST(Repeat, shows_again_until_reading_fails) {
  FakeDaemon daemon;
  std::ostringstream out;
  Session session{daemon, out, Style(false), true, false};
  int rounds = 0;
  const auto done =
      repeat(session, std::chrono::duration<double>(1e-6), [&]() -> Outcome<std::string> {
        if (++rounds > 3) return tl::unexpected(Failure{ExitCode::unreachable, "gone"});
        return std::string("x\n");
      });
  ASSERT_FALSE(done);
  EXPECT_EQ(out.str(), "x\nx\nx\n");
}

TEST(Repeat, stops_when_nobody_reads_any_more) {
  FakeDaemon daemon;
  std::ostringstream out;
  Session session{daemon, out, Style(false), true, false};
  out.setstate(std::ios::badbit);
  EXPECT_TRUE(
      repeat(session, std::chrono::duration<double>(1e-6), [] { return std::string("x"); }));
}

TEST(FailureOf, daemon_errors_are_their_sentence_with_their_exit_code) {
  const auto code = [](const std::string& kind) {
    return failure_of("org.apusched1.Error." + kind, "sentence").code;
  };
  EXPECT_EQ(code("InvalidArgument"), ExitCode::refused);
  EXPECT_EQ(code("UnknownProfile"), ExitCode::refused);
  EXPECT_EQ(code("NotAllowed"), ExitCode::refused);
  EXPECT_EQ(code("LimitReached"), ExitCode::refused);
  EXPECT_EQ(code("NoSuchProcess"), ExitCode::not_found);
  EXPECT_EQ(code("NotRegistered"), ExitCode::not_found);
  EXPECT_EQ(code("AccessDenied"), ExitCode::denied);
  EXPECT_EQ(failure_of("org.apusched1.Error.Failed", "it \x1b[1m broke").sentence, "it ?[1m broke");
}

TEST(FailureOf, an_absent_daemon_is_one_sentence_that_says_how_to_start_it) {
  for (const char* name :
       {"org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner",
        "org.freedesktop.DBus.Error.Spawn.ChildExited"}) {
    const auto failure = failure_of(name, "whatever");
    EXPECT_EQ(failure.code, ExitCode::unreachable);
    EXPECT_EQ(failure.sentence,
              "apuschedd is not running; start it with: systemctl start apuschedd");
  }
}

TEST(FailureOf, silence_and_bus_denial_are_told_apart) {
  EXPECT_EQ(failure_of("org.freedesktop.DBus.Error.NoReply", "").code, ExitCode::unreachable);
  EXPECT_EQ(failure_of("org.freedesktop.DBus.Error.AccessDenied", "").code, ExitCode::denied);
  EXPECT_EQ(failure_of("org.freedesktop.DBus.Error.UnknownMethod", "x").code, ExitCode::refused);
}

}  // namespace
}  // namespace apusched::ctl
