// SPDX-License-Identifier: MIT
// apusched-freezer: stops background units for a part of the time on behalf of apuschedd, and is
// the dead man's switch that lets them run when apuschedd is gone.
#include <sys/resource.h>
#include <sys/signalfd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "freezer/group_file.hpp"
#include "freezer/guard.hpp"

namespace {

/// It has to run in time under the very load that it holds back.
constexpr int kNice = -15;
constexpr int kUsage = 2;

/// Readable once somebody wants us to end.
apusched::platform::UniqueFd stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  return apusched::platform::UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC));
}

}  // namespace

int main(int argc, char** argv) {
  std::string root = "/sys/fs/cgroup";
  int socket = -1;
  CLI::App app("Stops background units for apuschedd; not for use by hand.", "apusched-freezer");
  app.set_version_flag("--version", std::string("apusched-freezer ") + APUSCHED_VERSION);
  app.add_option("--cgroup-root", root, "Where the cgroup file systems are mounted");
  app.add_option("--fd", socket, "Socket to apuschedd")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  ::setpriority(PRIO_PROCESS, 0, kNice);
  const auto stop = stop_signals();
  if (!stop) {
    std::perror("apusched-freezer: signalfd");
    return 1;
  }
  apusched::freezer::Guard guard(apusched::platform::UniqueFd(socket),
                                 apusched::freezer::unified_root(root));
  return guard.run(stop.get()) ? 0 : 1;
}
