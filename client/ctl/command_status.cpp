// SPDX-License-Identifier: MIT
#include <memory>

#include "ctl/command.hpp"
#include "ctl/json.hpp"
#include "ctl/render.hpp"

namespace apusched::ctl {
namespace {

Outcome<StatusView> read_status(DaemonClient& client) {
  StatusView status;
  auto daemon = client.daemon();
  if (!daemon) return tl::unexpected(daemon.error());
  auto gpus = client.gpus(false);
  if (!gpus) return tl::unexpected(gpus.error());
  auto processes = client.processes();
  if (!processes) return tl::unexpected(processes.error());
  return StatusView{std::move(*daemon), std::move(*gpus), std::move(*processes)};
}

}  // namespace

void add_status(CLI::App& app, Action& chosen) {
  auto* command = app.add_subcommand("status", "Show the daemon, the GPUs and every process");
  auto seconds = std::make_shared<double>(0);
  command->add_option("--watch", *seconds, "Show again every SECONDS until interrupted")
      ->check(CLI::Range(0.1, 86400.0))
      ->option_text("SECONDS");
  command->callback([&chosen, seconds] {
    chosen = [seconds](Session& session) {
      return repeat(session, std::chrono::duration<double>(*seconds),
                    [&]() -> Outcome<std::string> {
                      const auto status = read_status(session.daemon);
                      if (!status) return tl::unexpected(status.error());
                      return session.json ? to_text(json_of(*status), *seconds > 0)
                                          : render_status(*status, session.style);
                    });
    };
  });
}

}  // namespace apusched::ctl
