// SPDX-License-Identifier: MIT
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "ctl/daemon_client.hpp"
#include "ctl/launch.hpp"
#include "ctl/text.hpp"

namespace apusched::ctl {

/// What a command works with.
struct Session {
  DaemonClient& daemon;
  std::ostream& out;
  Style style;
  bool json = false;
  bool is_terminal = false;
  std::ostream& notes = std::cerr;
  /// Replaces this process; answers only where that failed.
  std::function<Failure(const std::vector<std::string>&, const Environment&)> launch = &ctl::launch;
  std::function<void(std::chrono::milliseconds)> pause = &ctl::pause;
};

using Action = std::function<Outcome<void>(Session&)>;

/// Each adds one subcommand to the parser; when the user names it, `chosen` is set.
void add_status(CLI::App& app, Action& chosen);
void add_list(CLI::App& app, Action& chosen);
void add_register(CLI::App& app, Action& chosen);
void add_run(CLI::App& app, Action& chosen);
void add_explain(CLI::App& app, Action& chosen);
void add_history(CLI::App& app, Action& chosen);
void add_unregister(CLI::App& app, Action& chosen);
void add_gpu(CLI::App& app, Action& chosen);
void add_probe(CLI::App& app, Action& chosen);

/// Repeats `once` for ever at the given interval, until it fails or the output is closed; runs it
/// once when the interval is zero. On a terminal each round replaces the one before; otherwise
/// JSON is one document per line.
[[nodiscard]] Outcome<void> repeat(Session& session, std::chrono::duration<double> interval,
                                   const std::function<Outcome<std::string>()>& once);

}  // namespace apusched::ctl
