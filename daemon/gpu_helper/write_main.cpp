// SPDX-License-Identifier: MIT
#include <sys/time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "gpu_helper/level_change.hpp"
#include "gpu_helper/level_line.hpp"

namespace {

using namespace apusched;
using gpu_helper::WriterExit;

/// Async-signal-safe: a sysfs access that hangs interruptibly ends here with an answer.
extern "C" void on_alarm(int) {
  constexpr std::string_view kLine = "error=timed_out the kernel did not answer in time\n";
  const auto ignored = write(STDOUT_FILENO, kLine.data(), kLine.size());
  static_cast<void>(ignored);
  _exit(static_cast<int>(WriterExit::timed_out));
}

void arm_deadline(int milliseconds) {
  struct sigaction action {};
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, nullptr);
  itimerval timer{};
  timer.it_value = {milliseconds / 1000, (milliseconds % 1000) * 1000};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

int usage_error(const char* text) {
  std::fprintf(stderr, "apusched-gpu-write: %s\n", text);
  return static_cast<int>(WriterExit::usage);
}

int print(const core::Result<core::PerformanceLevel>& result) {
  std::puts(gpu_helper::format_level_line(result).c_str());
  std::fflush(stdout);
  return static_cast<int>(result ? WriterExit::ok : gpu_helper::exit_of(result.error().code));
}

constexpr const char* kExitCodes =
    "Prints one line: level=WORD or error=CODE SENTENCE.\n"
    "Exit codes: 0 done, 2 usage, 3 another level than the expected one is in force, 4 denied,\n"
    "5 not supported by this GPU, 6 no such GPU, 7 failed, 8 timed out.";

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Reads or writes the performance level of one amdgpu GPU"};
  std::string root = "/sys";
  std::string gpu;
  std::string level;
  std::string expected;
  bool only_read = false;
  bool dry_run = false;
  int deadline = 3000;
  app.footer(kExitCodes);
  app.add_option("--sysfs-root", root, "where sysfs is mounted");
  app.add_option("--gpu", gpu, "PCI address, e.g. 0000:04:00.0")->required();
  auto* read_flag = app.add_flag("--read", only_read, "print the level in force");
  auto* expect_option = app.add_option("--expect", expected, "write only over this level");
  app.add_option("--level", level, "level to write")->needs(expect_option)->excludes(read_flag);
  app.add_flag("--dry-run", dry_run, "check everything, write nothing");
  app.add_option("--deadline-ms", deadline, "give up after this time")
      ->check(CLI::Range(1, 600000));
  app.set_version_flag("--version", APUSCHED_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(WriterExit::usage);
  }
  const auto address = core::PciAddress::parse(gpu);
  if (!address) return usage_error("--gpu: expected a PCI address like 0000:04:00.0");
  const gpu_helper::LevelTarget target{root, *address};
  arm_deadline(deadline);
  if (only_read) return print(gpu_helper::read_level(target));
  const auto wanted = core::parse_performance_level(level);
  const auto over = core::parse_performance_level(expected);
  if (!wanted || !over) return usage_error("give --read, or --level and --expect with a level");
  return print(gpu_helper::change_level(target, {*wanted, *over, dry_run}));
}
