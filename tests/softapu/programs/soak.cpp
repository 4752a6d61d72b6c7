// SPDX-License-Identifier: MIT
// Looks for lost doorbells: several producers on own and shared queues submit one packet or a few,
// wait for them, and pause for about as long as the engine spins before it sleeps. Every wait is
// bounded: a stall fails. At the end every queue must have retired all that was submitted.
#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "device/shared_device.h"
#include "programs/hsa_program.h"
#include "session/layout.h"

namespace {

using namespace apusched::softapu;
using std::chrono::microseconds;

struct Options {
  unsigned threads = 4;
  unsigned queues = 3;
  std::uint64_t packets = 200'000;
  unsigned seed = 1;
  unsigned stall_seconds = 20;
};

// Around the engine's default spin of 30 us, with some that let everything fall asleep.
void pause_somewhat(std::mt19937& random) {
  const auto kind = random() % 100;
  if (kind < 60) return;
  if (kind < 97) {
    const auto until = std::chrono::steady_clock::now() + microseconds{random() % 80};
    while (std::chrono::steady_clock::now() < until) {
    }
  } else {
    std::this_thread::sleep_for(microseconds{20 + random() % 400});
  }
}

void produce(const Options& options, unsigned thread, const std::vector<Queue*>& queues,
             Kernel noop, std::atomic<std::uint64_t>& left) {
  std::mt19937 random(options.seed * 1000 + thread);
  Signal done;
  for (;;) {
    const std::uint64_t burst = 1 + random() % 4;
    std::uint64_t before = left.load();
    while (before >= burst && !left.compare_exchange_weak(before, before - burst)) {
    }
    if (before < burst) return;
    const Queue& queue = *queues[random() % queues.size()];
    done.set(static_cast<hsa_signal_value_t>(burst));
    for (std::uint64_t i = 0; i < burst; i++) {
      if (random() % 3 == 0)
        queue.dispatch({noop, 1, 64, nullptr, random() % 2 == 0}, &done);
      else
        queue.barrier_and(nullptr, &done, random() % 2 == 0);
    }
    const auto how = random() % 8 == 0 ? HSA_WAIT_STATE_BLOCKED : HSA_WAIT_STATE_ACTIVE;
    if (!done.wait(how, std::chrono::seconds{options.stall_seconds}))
      give_up("stall: a packet of thread " + std::to_string(thread) + " was not retired in " +
              std::to_string(options.stall_seconds) + " s");
    pause_somewhat(random);
  }
}

// Sums over this process's queues.
int check_counters() {
  const char* session = std::getenv(kSessionVariable);
  if (session == nullptr) give_up("not in a session: run me with softapu-run");
  const auto device = SharedDevice::open(std::string(session) + "/" + kStateFile);
  if (device == nullptr) give_up("cannot read the session's counters");
  SharedDevice::Access access(*device);
  std::uint64_t submitted = 0;
  std::uint64_t retired = 0;
  std::uint64_t faults = 0;
  for (const QueueState& queue : access.state().queues) {
    if (queue.used == 0) continue;
    submitted += queue.counters.submitted;
    retired += queue.counters.retired;
  }
  for (const Client& client : access.state().clients)
    if (client.pid != 0) faults += client.doorbell_faults;
  std::printf("{\"submitted\": %llu, \"retired\": %llu, \"doorbell_faults\": %llu}\n",
              static_cast<unsigned long long>(submitted), static_cast<unsigned long long>(retired),
              static_cast<unsigned long long>(faults));
  return submitted == retired ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Soak test of the doorbell watcher"};
  Options options;
  app.add_option("--threads", options.threads)->check(CLI::Range(1, 64));
  app.add_option("--queues", options.queues)->check(CLI::Range(1, 32));
  app.add_option("--packets", options.packets);
  app.add_option("--seed", options.seed);
  app.add_option("--stall-seconds", options.stall_seconds);
  CLI11_PARSE(app, argc, argv);
  Gpu gpu;
  gpu.load_kernels();
  std::vector<std::unique_ptr<Queue>> queues;
  std::vector<Queue*> shared;
  for (unsigned i = 0; i < options.queues; i++) {
    queues.push_back(std::make_unique<Queue>(gpu, 64));
    shared.push_back(queues.back().get());
  }
  std::atomic<std::uint64_t> left{options.packets};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < options.threads; i++)
    threads.emplace_back([&, i] { produce(options, i, shared, gpu.kernel("noop"), left); });
  for (std::thread& thread : threads) thread.join();
  const int status = check_counters();
  queues.clear();
  return status;
}
