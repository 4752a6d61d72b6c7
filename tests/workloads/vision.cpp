// SPDX-License-Identifier: MIT
// Images at a frame rate, a batch of medium kernels each; the next frame is submitted while the
// one before is under way.
#include "workloads/run.h"

int main(int argc, char** argv) {
  using std::chrono::microseconds;
  return apusched::workloads::run(argc, argv,
                                  {.name = "vision",
                                   .about = "Looks at images: medium kernels, at a frame rate",
                                   .rate_hz = 30,
                                   .kernels = 12,
                                   .workgroups = 96,
                                   .per_workgroup = microseconds{50},
                                   .in_flight = 2});
}
