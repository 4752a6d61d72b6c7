// SPDX-License-Identifier: MIT
// apuschedctl: shows what apuschedd does, and registers processes with it.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <optional>
#include <string_view>

#include "ctl/command.hpp"

namespace apusched::ctl {
namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 done; 1 refused or failed; 2 wrong command line; 3 daemon or bus not reachable; "
    "4 access denied; 5 no such process or registration. run: the program's own, 126 where it "
    "cannot "
    "be started, 127 where it is not found.";

std::optional<std::string_view> environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string_view>(value);
}

struct Options {
  std::string bus = "system";
  bool json = false;
  Action action;
};

void declare(CLI::App& app, Options& options) {
  app.name("apuschedctl");
  app.footer(kExitCodes);
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", APUSCHED_VERSION);
  app.add_option("--bus", options.bus, "system, session or a D-Bus address")
      ->envname("APUSCHED_BUS")
      ->option_text("BUS");
  app.add_flag("--json", options.json, "Write JSON instead of text");
  add_status(app, options.action);
  add_list(app, options.action);
  add_register(app, options.action);
  add_unregister(app, options.action);
  add_run(app, options.action);
  add_explain(app, options.action);
  add_history(app, options.action);
  add_gpu(app, options.action);
  add_probe(app, options.action);
}

int finish(const Failure& failure) {
  std::cerr << "apuschedctl: " << failure.sentence << "\n";
  return static_cast<int>(failure.code);
}

int run(int argc, char** argv) {
  CLI::App app{"Shows what apuschedd does, and registers processes with it."};
  Options options;
  declare(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::usage);
  }
  auto client = connect(options.bus);
  // Whether a command can do without is the command's business.
  const auto daemon = client ? std::move(*client) : unreachable(client.error());
  const bool is_terminal = isatty(STDOUT_FILENO) == 1;
  Session session{*daemon, std::cout,
                  Style(wants_colour(is_terminal, environment("NO_COLOR"), environment("TERM"))),
                  options.json, is_terminal};
  const auto done = options.action(session);
  return done ? static_cast<int>(ExitCode::ok) : finish(done.error());
}

}  // namespace
}  // namespace apusched::ctl

int main(int argc, char** argv) {
  try {
    return apusched::ctl::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "apuschedctl: " << error.what() << "\n";
    return static_cast<int>(apusched::ctl::ExitCode::refused);
  }
}
