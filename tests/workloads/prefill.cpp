// SPDX-License-Identifier: MIT
// Prompts that arrive at their rate: a burst of large kernels each.
#include "workloads/run.h"

int main(int argc, char** argv) {
  using std::chrono::microseconds;
  return apusched::workloads::run(argc, argv,
                                  {.name = "prefill",
                                   .about = "Reads prompts: bursts of large kernels",
                                   .rate_hz = 2,
                                   .kernels = 48,
                                   .workgroups = 480,
                                   .per_workgroup = microseconds{50}});
}
