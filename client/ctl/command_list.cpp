// SPDX-License-Identifier: MIT
#include <ostream>

#include "ctl/command.hpp"
#include "ctl/json.hpp"
#include "ctl/render.hpp"

namespace apusched::ctl {

void add_list(CLI::App& app, Action& chosen) {
  app.add_subcommand("list", "List the registered processes")->callback([&chosen] {
    chosen = [](Session& session) -> Outcome<void> {
      const auto processes = session.daemon.processes();
      if (!processes) return tl::unexpected(processes.error());
      session.out << (session.json ? to_text(json_list(*processes), false)
                                   : render_list(*processes, session.style));
      return {};
    };
  });
}

}  // namespace apusched::ctl
