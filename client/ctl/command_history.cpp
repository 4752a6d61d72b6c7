// SPDX-License-Identifier: MIT
#include <memory>
#include <ostream>

#include "ctl/command.hpp"
#include "ctl/json.hpp"
#include "ctl/render.hpp"

namespace apusched::ctl {
namespace {

constexpr std::uint32_t kMostLines = 512;  ///< as many as the daemon keeps

Outcome<void> show_history(Session& session, std::uint32_t count) {
  const auto lines = session.daemon.history(count);
  if (!lines) return tl::unexpected(lines.error());
  session.out << (session.json ? to_text(json_history(*lines), false)
                               : render_history(*lines, session.style));
  return {};
}

}  // namespace

void add_history(CLI::App& app, Action& chosen) {
  auto* command =
      app.add_subcommand("history", "What the control loop tried, what came of it, and when");
  auto count = std::make_shared<std::uint32_t>(20);
  command->add_option("-n,--lines", *count, "At most so many, the newest last")
      ->check(CLI::Range(std::uint32_t{1}, kMostLines));
  command->callback([&chosen, count] {
    chosen = [count](Session& session) { return show_history(session, *count); };
  });
}

}  // namespace apusched::ctl
