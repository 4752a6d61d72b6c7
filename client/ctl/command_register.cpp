// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <ostream>

#include "ctl/command.hpp"
#include "ctl/json.hpp"
#include "ctl/render.hpp"

namespace apusched::ctl {
namespace {

struct Request {
  std::uint32_t pid = 0;
  std::string profile;
  bool include_children = false;
};

Outcome<void> run(Session& session, const Request& request) {
  const auto path = session.daemon.register_process(request.pid, request.profile,
                                                    {.include_children = request.include_children});
  if (!path) return tl::unexpected(path.error());
  const auto processes = session.daemon.processes();
  if (!processes) return tl::unexpected(processes.error());
  const auto process = std::ranges::find(*processes, *path, &ProcessView::object_path);
  if (process == processes->end())
    return tl::unexpected(Failure{ExitCode::not_found, "process " + std::to_string(request.pid) +
                                                           " was registered, but is gone already"});
  if (session.json) {
    nlohmann::ordered_json document;
    document["schema"] = kJsonSchema;
    document["process"] = json_of(*process);
    session.out << to_text(document, false);
  } else {
    session.out << render_process(*process, session.style);
  }
  return {};
}

}  // namespace

void add_register(CLI::App& app, Action& chosen) {
  auto* command = app.add_subcommand("register", "Give a process the settings of a profile");
  auto request = std::make_shared<Request>();
  command->add_option("PID", request->pid, "The process")
      ->required()
      ->check(CLI::Range(std::int32_t{1}, std::numeric_limits<std::int32_t>::max()));
  command->add_option("-p,--profile", request->profile, "Profile, e.g. llm-interactive")
      ->required()
      ->option_text("PROFILE");
  command->add_flag("--include-children", request->include_children,
                    "Cover the children of the process too, now and later");
  command->callback([&chosen, request] {
    chosen = [request](Session& session) { return run(session, *request); };
  });
}

}  // namespace apusched::ctl
