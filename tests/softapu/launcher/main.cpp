// SPDX-License-Identifier: MIT
// softapu-run: runs a command as if the machine had an AMD APU.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>

#include "launcher/runtime.h"
#include "launcher/session.h"
#include "launcher/supervisor.h"
#include "session/layout.h"

namespace {

using namespace apusched::softapu;
namespace fs = std::filesystem;

// As shells have it.
constexpr int kCannotRun = 126;
constexpr int kUsage = 2;

struct Options {
  std::string model = "rembrandt";
  fs::path session;
  fs::path join;
  bool serve = false;
  bool print_env = false;
  std::vector<std::string> traps;
  std::string cpu_load = "0";
  std::vector<std::string> command;
};

[[noreturn]] void execute(const Options& options, const fs::path& directory) {
  for (const auto& [name, value] : session_environment(directory, Installation::find()))
    setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& argument : options.command)
    arguments.push_back(const_cast<char*>(argument.c_str()));  // NOLINT: execvp's signature
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "softapu-run: %s: %s\n", arguments[0], std::strerror(errno));
  std::_Exit(errno == ENOENT ? kCannotRun + 1 : kCannotRun);
}

std::string quoted(const std::string& value) {
  std::string out = "'";
  for (const char c : value) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

int join(const Options& options) {
  std::error_code error;
  const fs::path directory = fs::canonical(options.join, error);
  if (error || !fs::exists(directory / kReadyFile)) {
    std::fprintf(stderr, "softapu-run: no session is served at %s\n", options.join.c_str());
    return kCannotRun;
  }
  if (!options.print_env) execute(options, directory);
  for (const auto& [name, value] : session_environment(directory, Installation::find()))
    std::printf("%s=%s\n", name.c_str(), quoted(value).c_str());
  return 0;
}

pid_t start(const Options& options, const fs::path& directory) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execute(options, directory);
}

// Ends as the command did.
int pass_on(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const int number = WTERMSIG(status);
  std::signal(number, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  raise(number);
  return 128 + number;
}

SupervisorOptions supervisor_options(const Options& options) {
  SupervisorOptions out;
  for (const std::string& name : options.traps) {
    const auto trap = trap_named(name);
    if (!trap) throw ModelError("--trap: there is no \"" + name + "\"; see --help");
    out.traps.set(*trap);
  }
  const auto load = CpuLoad::parse(options.cpu_load);
  if (!load)
    throw ModelError("--cpu-load: expected \"measured\" or 0 to 1, got " + options.cpu_load);
  out.cpu_load = *load;
  return out;
}

int serve(const Options& options) {
  const SupervisorOptions wanted = supervisor_options(options);
  const auto gpus = read_machine(Installation::find().model(options.model));
  for (const MachineModel& model : gpus)
    if (const auto sentence = refusal(model)) {
      std::fprintf(stderr, "softapu-run: %s\n", sentence->c_str());
      return kCannotRun;
    }
  int status = 0;
  {
    Session session(options.session, gpus);
    Supervisor supervisor(session.directory(), gpus[0], 0, wanted);
    std::vector<std::unique_ptr<Supervisor>> others;
    for (std::size_t gpu = 1; gpu < gpus.size(); gpu++) {
      others.push_back(std::make_unique<Supervisor>(session.directory(), gpus[gpu], gpu, wanted));
      supervisor.serve_also(*others.back());
    }
    session.announce();
    if (options.serve) {
      std::printf("ready %s\n", session.directory().c_str());
      std::fflush(stdout);
      return supervisor.run(std::nullopt);
    }
    const pid_t child = start(options, session.directory());
    if (child < 0) {
      std::perror("softapu-run: fork");
      return kCannotRun;
    }
    status = supervisor.run(child);
  }
  return pass_on(status);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Runs a command as if this machine had an AMD APU (a software model)."};
  Options options;
  app.add_option("--model", options.model, "name of a file in models/, without .json")
      ->capture_default_str();
  app.add_option("--session", options.session, "directory of a session that stays");
  app.add_option("--join", options.join, "directory of a session that is being served");
  app.add_flag("--serve", options.serve, "serve the session until killed");
  app.add_flag("--print-env", options.print_env, "with --join: print the environment");
  std::string traps = "texts that parsers fall over:";
  for (const auto& [trap, name] : kTraps) traps += " " + std::string(name);
  app.add_option("--trap", options.traps, traps)->delimiter(',')->expected(1);
  app.add_option("--cpu-load", options.cpu_load,
                 "load of the CPUs, which share the package's power: 0 to 1, or measured")
      ->capture_default_str();
  app.prefix_command();
  CLI11_PARSE(app, argc, argv);
  options.command = app.remaining();
  if (!options.command.empty() && options.command.front() == "--")
    options.command.erase(options.command.begin());
  const bool runs = !options.serve && !options.print_env;
  if (runs == options.command.empty() || (options.print_env && options.join.empty()) ||
      (options.serve && !options.join.empty())) {
    std::fprintf(stderr,
                 "softapu-run: see --help: a command, --serve, or --join with "
                 "--print-env\n");
    return kUsage;
  }
  try {
    return options.join.empty() ? serve(options) : join(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "softapu-run: %s\n", error.what());
    return kCannotRun;
  }
}
