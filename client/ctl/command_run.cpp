// SPDX-License-Identifier: MIT
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <ostream>

#include "ctl/command.hpp"
#include "ctl/launch.hpp"

namespace apusched::ctl {
namespace {

constexpr std::chrono::milliseconds kAdmissionPoll{500};

struct Launch {
  std::string profile = "llm-interactive";
  bool no_agent = false;
  bool best_effort = false;
  bool now = false;
  std::vector<std::string> command;
};

std::optional<std::string_view> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string_view>(value);
}

/// Until there is room for a background program, or for as long as the daemon says.
void await_admission(Session& session, const std::string& profile) {
  std::chrono::milliseconds waited{0};
  for (bool told = false;; told = true) {
    const auto admission = session.daemon.admission(profile);
    // Without an answer there is nothing to wait for; what is wrong is said when it registers.
    if (!admission || admission->admits) return;
    if (waited >= admission->wait) {
      session.notes << "apuschedctl: started all the same: " << admission->why << std::endl;
      return;
    }
    if (!told)
      session.notes << "apuschedctl: waiting for at most "
                    << std::chrono::ceil<std::chrono::seconds>(admission->wait).count()
                    << " s (--now does not): " << admission->why << std::endl;
    session.pause(kAdmissionPoll);
    waited += kAdmissionPoll;
  }
}

/// Asks for the environment first: a profile that is not there must not leave a registration.
Outcome<LaunchPlan> prepare(DaemonClient& daemon, const Launch& request) {
  const auto wanted = daemon.launch_environment(request.profile, !request.no_agent);
  if (!wanted) return tl::unexpected(wanted.error());
  auto plan = plan_launch(*wanted, variable);
  const auto path =
      daemon.register_process(static_cast<std::uint32_t>(::getpid()), request.profile,
                              {.include_children = true, .expect_agent = !request.no_agent});
  if (!path) return tl::unexpected(path.error());
  return plan;
}

Outcome<void> run_command(Session& session, const Launch& request) {
  if (!request.now) await_admission(session, request.profile);
  const auto plan = prepare(session.daemon, request);
  if (!plan && !request.best_effort) return tl::unexpected(plan.error());
  if (!plan)
    session.notes << "apuschedctl: " << plan.error().sentence << "; started without\n";
  else
    for (const auto& note : plan->notes) session.notes << "apuschedctl: " << note << "\n";
  session.notes.flush();
  return tl::unexpected(session.launch(request.command, plan ? plan->set : Environment{}));
}

}  // namespace

void add_run(CLI::App& app, Action& chosen) {
  auto* command = app.add_subcommand("run", "Start a program with the settings of a profile");
  auto request = std::make_shared<Launch>();
  command->add_option("-p,--profile", request->profile, "Profile, by default llm-interactive")
      ->option_text("PROFILE");
  command->add_flag("--no-agent", request->no_agent,
                    "Without the agent in the program; the runtimes' own variables instead");
  command->add_flag("--best-effort", request->best_effort,
                    "Start the program also where apuschedd cannot be reached or refuses");
  command->add_flag("--now", request->now,
                    "Do not wait where apuschedd asks to start background programs later");
  command->add_option("COMMAND", request->command, "The program and its arguments")
      ->required()
      ->option_text("-- COMMAND...");
  command->positionals_at_end();
  command->callback([&chosen, request] {
    chosen = [request](Session& session) { return run_command(session, *request); };
  });
}

}  // namespace apusched::ctl
