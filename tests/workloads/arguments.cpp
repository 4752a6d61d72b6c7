// SPDX-License-Identifier: MIT
#include "workloads/arguments.h"

#include <CLI/CLI.hpp>

namespace apusched::workloads {
namespace {

constexpr int kUsage = 2;
constexpr double kMostMicroseconds = 1e6;

std::chrono::nanoseconds from_seconds(double seconds) {
  return std::chrono::nanoseconds{static_cast<std::int64_t>(seconds * 1e9)};
}

}  // namespace

Options read_arguments(int argc, char** argv, Shape shape) {
  CLI::App app{shape.about};
  app.name(shape.name);
  Options options;
  options.shape = std::move(shape);
  Shape& s = options.shape;
  double microseconds = static_cast<double>(s.per_workgroup.count()) / 1000;
  double seconds = 0;
  double skip = 0;
  std::string wait = "blocked";
  app.add_option("--rate", s.rate_hz, "rounds per second, 0: back to back")
      ->check(CLI::Range(0.0, 100000.0))
      ->capture_default_str();
  app.add_option("--kernels", s.kernels, "of a round, one after the other")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--workgroups", s.workgroups, "of a kernel")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--workgroup-us", microseconds, "of one workgroup on one compute unit")
      ->check(CLI::Range(0.0, kMostMicroseconds))
      ->capture_default_str();
  app.add_option("--in-flight", s.in_flight, "rounds on their way at the same time, at most")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--wait", wait, "how the waiting thread waits: blocked or busy")
      ->check(CLI::IsMember({"blocked", "busy"}))
      ->capture_default_str();
  app.add_option("--duration", seconds, "seconds, 0: until SIGTERM or SIGINT")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  app.add_option("--skip", skip, "seconds whose rounds are not measured, at the beginning")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  app.add_option("--kernel-directory", options.kernel_directory, "of kernels-<gfx>.hsaco")
      ->check(CLI::ExistingDirectory);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : kUsage);
  }
  s.per_workgroup = from_seconds(microseconds / 1e6);
  options.duration = from_seconds(seconds);
  options.skip = from_seconds(skip);
  options.busy_wait = wait == "busy";
  return options;
}

}  // namespace apusched::workloads
