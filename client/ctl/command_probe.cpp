// SPDX-License-Identifier: MIT
#include <memory>

#include "ctl/command.hpp"
#include "ctl/json.hpp"
#include "ctl/render.hpp"

namespace apusched::ctl {

void add_probe(CLI::App& app, Action& chosen) {
  auto* command = app.add_subcommand("probe", "Show each GPU's dispatch latency by source");
  auto seconds = std::make_shared<double>(0);
  command->add_option("--watch", *seconds, "Show again every SECONDS until interrupted")
      ->check(CLI::Range(0.1, 86400.0))
      ->option_text("SECONDS");
  command->callback([&chosen, seconds] {
    chosen = [seconds](Session& session) {
      return repeat(session, std::chrono::duration<double>(*seconds),
                    [&]() -> Outcome<std::string> {
                      const auto gpus = session.daemon.gpus(false);
                      if (!gpus) return tl::unexpected(gpus.error());
                      return session.json ? to_text(json_probe(*gpus), *seconds > 0)
                                          : render_probe(*gpus, session.style);
                    });
    };
  });
}

}  // namespace apusched::ctl
