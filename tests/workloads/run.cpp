// SPDX-License-Identifier: MIT
#include "workloads/run.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <iostream>

#include "workloads/arguments.h"
#include "workloads/rounds.h"

namespace apusched::workloads {
namespace {

void print(const char* event, const Options& options, nlohmann::json body) {
  body["event"] = event;
  body["workload"] = options.shape.name;
  body["pid"] = getpid();
  body["wait"] = options.busy_wait ? "busy" : "blocked";
  body["rate_hz"] = options.shape.rate_hz;
  std::cout << body.dump() << std::endl;
}

void await_the_end(const Options& options, const sigset_t& set) {
  if (options.duration.count() == 0) {
    while (sigwaitinfo(&set, nullptr) < 0) {
    }
    return;
  }
  const timespec limit{static_cast<time_t>(options.duration.count() / 1'000'000'000),
                       static_cast<long>(options.duration.count() % 1'000'000'000)};
  sigtimedwait(&set, nullptr, &limit);
}

}  // namespace

int run(int argc, char** argv, Shape shape) {
  const Options options = read_arguments(argc, argv, std::move(shape));
  // Before any thread exists, so that all of them block the signals.
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT}) sigaddset(&set, number);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  softapu::Gpu gpu;
  gpu.load_kernels(options.kernel_directory);
  Rounds rounds(gpu, options);
  print("ready", options, {{"gpu", gpu.name()}});
  await_the_end(options, set);
  rounds.stop();
  print("final", options, rounds.summary());
  return 0;
}

}  // namespace apusched::workloads
