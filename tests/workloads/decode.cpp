// SPDX-License-Identifier: MIT
// The decode loop of a language model: at a token rate, a chain of small kernels; the next token
// needs the one before.
#include "workloads/run.h"

int main(int argc, char** argv) {
  using std::chrono::microseconds;
  return apusched::workloads::run(
      argc, argv,
      {.name = "decode",
       .about = "Decodes tokens: small kernels in order, at a token rate",
       .rate_hz = 20,
       .kernels = 32,
       .workgroups = 12,
       .per_workgroup = microseconds{20}});
}
