// SPDX-License-Identifier: MIT
#include <cstdint>
#include <limits>
#include <memory>
#include <ostream>

#include "ctl/command.hpp"
#include "ctl/json.hpp"

namespace apusched::ctl {
namespace {

void say(Session& session, std::uint32_t pid, const std::vector<std::string>& released) {
  if (session.json) {
    nlohmann::ordered_json document;
    document["schema"] = kJsonSchema;
    document["released"] = released;
    session.out << to_text(document, false);
  } else {
    session.out << "process " << pid << ": released, its settings are restored\n";
  }
}

Outcome<void> run(Session& session, std::uint32_t pid) {
  const auto processes = session.daemon.processes();
  if (!processes) return tl::unexpected(processes.error());
  std::vector<std::string> released;
  for (const auto& process : *processes) {
    if (process.pid != pid) continue;
    const auto done = session.daemon.unregister(process.object_path);
    if (!done) return done;
    released.push_back(process.object_path);
  }
  if (released.empty())
    return tl::unexpected(
        Failure{ExitCode::not_found,
                "process " + std::to_string(pid) + " is not registered; see: apuschedctl list"});
  say(session, pid, released);
  return {};
}

}  // namespace

void add_unregister(CLI::App& app, Action& chosen) {
  auto* command = app.add_subcommand("unregister", "Release a process and restore its settings");
  auto pid = std::make_shared<std::uint32_t>(0);
  command->add_option("PID", *pid, "The process")
      ->required()
      ->check(CLI::Range(std::int32_t{1}, std::numeric_limits<std::int32_t>::max()));
  command->callback(
      [&chosen, pid] { chosen = [pid](Session& session) { return run(session, *pid); }; });
}

}  // namespace apusched::ctl
