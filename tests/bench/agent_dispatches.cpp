// SPDX-License-Identifier: MIT
// Submits no-op kernels as an engine does, and says what a submission takes the submitting thread:
// reserving the packet, writing it, ringing the doorbell. Knows of no agent; bench_agent.py starts
// it with and without. The doorbell's share is left out by --reserve-only (for counting).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "programs/hsa_program.h"

namespace {

using namespace apusched::softapu;
using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr std::uint32_t kPackets = 1024;

double at(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

// As HIP's "any order" launches: with the bit set already, serial mode would have nothing to do.
Dispatch no_barrier(Kernel kernel) {
  Dispatch dispatch{kernel};
  dispatch.barrier = false;
  return dispatch;
}

// Called for its instructions: one reservation, as the library that a program links does it.
__attribute__((noinline)) std::uint64_t reserve(const hsa_queue_t* queue) {
  return hsa_queue_add_write_index_screlease(queue, 0);
}

// Nanoseconds per submission, of each batch.
std::vector<double> submit_batches(const Queue& queue, Kernel kernel, int batches, int size) {
  const Signal done;
  std::vector<double> result;
  for (int i = 0; i < batches; i++) {
    done.set(1);
    const auto begin = Clock::now();
    for (int n = 1; n < size; n++) queue.dispatch(no_barrier(kernel), nullptr);
    queue.dispatch(no_barrier(kernel), &done);
    const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
    if (!done.wait(HSA_WAIT_STATE_ACTIVE)) give_up("a batch did not complete");
    result.push_back(took.count() / size);
  }
  return result;
}

// One after the other, each awaited: dispatches per second.
double closed_loop(const Queue& queue, Kernel kernel, int count) {
  const Signal done;
  const auto begin = Clock::now();
  for (int i = 0; i < count; i++) {
    done.set(1);
    queue.dispatch(no_barrier(kernel), &done);
    if (!done.wait(HSA_WAIT_STATE_ACTIVE)) give_up("a kernel did not complete");
  }
  const std::chrono::duration<double> took = Clock::now() - begin;
  return count / took.count();
}

}  // namespace

int main(int argc, char** argv) {
  int batches = 2000;
  int size = 64;
  int rounds = 20'000;
  int reservations = 0;
  CLI::App app("submits no-op kernels");
  app.add_option("--batches", batches);
  app.add_option("--size", size)->check(CLI::Range(1, 512));
  app.add_option("--rounds", rounds);
  app.add_option("--reserve-only", reservations);
  CLI11_PARSE(app, argc, argv);
  Gpu gpu;
  gpu.load_kernels(executable_directory() + "/../softapu/programs");
  const Queue queue(gpu, kPackets);
  if (reservations > 0) {
    for (int i = 0; i < reservations; i++) reserve(queue.get());
    return 0;
  }
  const Kernel kernel = gpu.kernel("noop");
  submit_batches(queue, kernel, batches / 10 + 1, size);
  const auto submissions = submit_batches(queue, kernel, batches, size);
  const json result = {{"submit_ns_p10", at(submissions, 0.1)},
                       {"submit_ns_p50", at(submissions, 0.5)},
                       {"dispatches_per_s", closed_loop(queue, kernel, rounds)}};
  std::puts(result.dump().c_str());
  return 0;
}
