// SPDX-License-Identifier: MIT
// Background work without a pause: long kernels, the next round submitted before the one before is
// done, so that the GPU never idles.
#include "workloads/run.h"

int main(int argc, char** argv) {
  using std::chrono::microseconds;
  return apusched::workloads::run(argc, argv,
                                  {.name = "hog",
                                   .about = "Keeps the GPU busy: long kernels, back to back",
                                   .kernels = 1,
                                   .workgroups = 240,
                                   .per_workgroup = microseconds{1000},
                                   .in_flight = 2});
}
