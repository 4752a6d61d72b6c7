// SPDX-License-Identifier: MIT
// What a workload submits, and how its host threads behave.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace apusched::workloads {

// A round is what the host waits for as one: a token, a prompt, a batch of images.
struct Shape {
  std::string name;
  std::string about;
  double rate_hz = 0;                        // rounds per second, 0: back to back
  std::uint32_t kernels = 1;                 // of a round, in order
  std::uint32_t workgroups = 1;              // of a kernel
  std::chrono::nanoseconds per_workgroup{};  // on one compute unit at the reference clock
  std::uint32_t in_flight = 1;               // rounds submitted and not seen to complete, at most
};

struct Options {
  Shape shape;
  bool busy_wait = false;
  std::chrono::nanoseconds duration{0};  // 0: until SIGTERM or SIGINT
  std::chrono::nanoseconds skip{0};      // rounds that begin before are not measured
  std::string kernel_directory;          // of kernels-<gfx>.hsaco; empty: search beside the program
};

}  // namespace apusched::workloads
