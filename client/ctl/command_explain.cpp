// SPDX-License-Identifier: MIT
#include <limits>
#include <memory>
#include <ostream>

#include "ctl/command.hpp"
#include "ctl/json.hpp"
#include "ctl/render.hpp"

namespace apusched::ctl {
namespace {

Outcome<void> show_explanation(Session& session, std::uint32_t pid) {
  const auto lines = session.daemon.explain(pid);
  if (!lines) return tl::unexpected(lines.error());
  session.out << (session.json ? to_text(json_explain(pid, *lines), false)
                               : render_explain(pid, *lines, session.style));
  return {};
}

}  // namespace

void add_explain(CLI::App& app, Action& chosen) {
  auto* command =
      app.add_subcommand("explain", "Say how a process stands, and why, setting by setting");
  auto pid = std::make_shared<std::uint32_t>(0);
  command->add_option("PID", *pid, "The process")
      ->required()
      ->check(CLI::Range(std::int32_t{1}, std::numeric_limits<std::int32_t>::max()));
  command->callback([&chosen, pid] {
    chosen = [pid](Session& session) { return show_explanation(session, *pid); };
  });
}

}  // namespace apusched::ctl
