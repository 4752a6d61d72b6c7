// SPDX-License-Identifier: MIT
// Things that a program can see of the software APU through the HSA runtime, one per word on the
// command line; each prints "ok: ..." or ends with status 1 and a sentence.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "programs/hsa_program.h"

namespace {

using namespace apusched::softapu;
using std::chrono::microseconds;
using std::chrono::milliseconds;

void expect(bool condition, const std::string& what) {
  if (!condition) give_up("not ok: " + what);
}

void round_trips(const Gpu& gpu, hsa_wait_state_t how) {
  const Queue queue(gpu);
  const Signal done;
  for (int i = 0; i < 1000; i++) {
    done.set(1);
    queue.barrier_and(nullptr, &done);
    expect(done.wait(how), "barrier " + std::to_string(i) + " completes");
  }
}

void barriers_busy(Gpu& gpu) {
  round_trips(gpu, HSA_WAIT_STATE_ACTIVE);
}
void barriers_interrupt(Gpu& gpu) {
  round_trips(gpu, HSA_WAIT_STATE_BLOCKED);
}

std::chrono::nanoseconds kernel_time(const Gpu& gpu, const Queue& queue, const Dispatch& what) {
  const Signal done;
  queue.dispatch(what, &done);
  expect(done.wait(HSA_WAIT_STATE_BLOCKED), "a kernel completes");
  const DeviceTimes times = device_times(gpu, done);
  return times.end - times.start;
}

// Prints the device time of 120 workgroups of 100 us, for a test to compare between levels.
void kernel_cost(Gpu& gpu) {
  gpu.load_kernels();
  const Queue queue(gpu, 64, true);
  const auto time = kernel_time(gpu, queue, {gpu.kernel("work_100us"), 120});
  std::printf("kernel_us %lld\n", static_cast<long long>(time.count() / 1000));
}

void fill(Gpu& gpu) {
  gpu.load_kernels();
  const Queue queue(gpu);
  constexpr std::uint32_t kWords = 4096;
  auto* out = static_cast<std::uint32_t*>(gpu.allocate((kWords + 1) * 4));
  auto* arguments = static_cast<char*>(gpu.allocate(4096));
  std::memset(out, 0, (kWords + 1) * 4);
  const std::uint32_t value = 0xabcd;
  std::memcpy(arguments, &out, 8);
  std::memcpy(arguments + 8, &value, 4);
  const Signal done;
  queue.dispatch({gpu.kernel("fill32"), kWords / 64, 64, arguments}, &done);
  expect(done.wait(HSA_WAIT_STATE_BLOCKED), "fill completes");
  expect(out[0] == value && out[kWords - 1] == value && out[kWords] == 0, "fill fills its grid");
  gpu.release(out);
  gpu.release(arguments);
}

// Two kernels of one queue, the second without the barrier bit, and then with it.
void overlap(Gpu& gpu) {
  gpu.load_kernels();
  const Queue queue(gpu, 64, true);
  for (const bool barrier : {false, true}) {
    const Signal gate;
    const Signal first;
    const Signal second;
    queue.barrier_and(&gate, nullptr);
    queue.dispatch({gpu.kernel("work_1ms"), 6}, &first);
    queue.dispatch({gpu.kernel("work_1ms"), 6, 64, nullptr, barrier}, &second);
    // Not before both are there, however long this thread has to wait for a CPU.
    gate.set(0);
    expect(first.wait(HSA_WAIT_STATE_BLOCKED) && second.wait(HSA_WAIT_STATE_BLOCKED),
           "both complete");
    const DeviceTimes a = device_times(gpu, first);
    const DeviceTimes b = device_times(gpu, second);
    // Half a tick of the 100 MHz counter, and the runtime's clock fit.
    if (barrier)
      expect(b.start + microseconds{5} >= a.end, "the barrier bit keeps them apart");
    else
      expect(b.start < a.end && a.start < b.end, "without the barrier bit they overlap");
  }
}

void dependencies(Gpu& gpu) {
  const Queue queue(gpu);
  const Queue other(gpu);
  const Signal gate;
  const Signal unrelated;
  const Signal both;
  const Signal either;
  const Signal after;
  queue.barrier_and(&gate, &both);
  queue.barrier_and(nullptr, &after);
  other.barrier_or(&gate, &unrelated, &either);
  expect(!both.wait(HSA_WAIT_STATE_BLOCKED, milliseconds{20}), "a barrier waits");
  expect(after.value() == 1 && either.value() == 1, "and what follows it");
  gate.set(0);
  expect(both.wait(HSA_WAIT_STATE_BLOCKED) && after.wait(HSA_WAIT_STATE_BLOCKED) &&
             either.wait(HSA_WAIT_STATE_BLOCKED),
         "they go on when the signal is zero");
}

void masks(Gpu& gpu) {
  gpu.load_kernels();
  const Queue queue(gpu, 64, true);
  const Dispatch work{gpu.kernel("work_100us"), 48};
  const std::uint32_t all = 0xfff;
  const std::uint32_t two = 0x3;
  require(hsa_amd_queue_cu_set_mask(queue.get(), 32, &two), "mask of two");
  const auto slow = kernel_time(gpu, queue, work);
  require(hsa_amd_queue_cu_set_mask(queue.get(), 32, &all), "mask of all");
  const auto fast = kernel_time(gpu, queue, work);
  expect(slow > 2 * fast, "two CUs are slower than all");
  std::printf("masked_us %lld all_us %lld\n", static_cast<long long>(slow.count() / 1000),
              static_cast<long long>(fast.count() / 1000));
}

// Leaves a masked queue of high priority for softapu-stat to look at, until stdin ends.
void hold(Gpu& gpu) {
  const Queue queue(gpu);
  const std::uint32_t mask = 0x3;
  require(hsa_amd_queue_cu_set_mask(queue.get(), 32, &mask), "mask");
  require(hsa_amd_queue_set_priority(queue.get(), HSA_AMD_QUEUE_PRIORITY_HIGH), "priority");
  const Signal done;
  queue.barrier_and(nullptr, &done);
  expect(done.wait(HSA_WAIT_STATE_BLOCKED), "a barrier completes");
  std::printf("holding\n");
  std::fflush(stdout);
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

void copies(Gpu& gpu) {
  auto* from = static_cast<unsigned char*>(gpu.allocate(1 << 20));
  auto* to = static_cast<unsigned char*>(gpu.allocate(1 << 20));
  for (const std::size_t offset : {0U, 1U})
    for (const std::size_t bytes : {1'000'000U, 4096U, 77U}) {
      for (std::size_t i = 0; i < bytes; i++)
        from[i + offset] = static_cast<unsigned char>(i * 7 + bytes);
      std::memset(to, 0, 1 << 20);
      const Signal done;
      require(hsa_amd_memory_async_copy(to, gpu.agent(), from + offset, gpu.agent(), bytes, 0,
                                        nullptr, done.get()),
              "hsa_amd_memory_async_copy");
      expect(done.wait(HSA_WAIT_STATE_BLOCKED), "a copy completes");
      expect(std::memcmp(to, from + offset, bytes) == 0 && to[bytes] == 0, "a copy is right");
    }
  require(hsa_amd_memory_fill(to, 0x5a5a5a5a, 1000), "hsa_amd_memory_fill");
  expect(to[0] == 0x5a && to[3999] == 0x5a && to[4000] != 0x5a, "a fill is right");
  gpu.release(from);
  gpu.release(to);
}

void many_signals(Gpu& gpu) {
  const Queue queue(gpu);
  std::vector<std::unique_ptr<Signal>> signals;
  for (int i = 0; i < 5000; i++) signals.push_back(std::make_unique<Signal>());
  queue.barrier_and(nullptr, signals.back().get());
  expect(signals.back()->wait(HSA_WAIT_STATE_BLOCKED), "a signal past the event limit works");
}

void create_and_destroy(Gpu& gpu) {
  for (int i = 0; i < 300; i++) const Queue queue(gpu, 64);
  const Queue stuck(gpu);
  const Signal never;
  stuck.barrier_and(&never, nullptr);
}

void fork_safety(Gpu& gpu) {
  const Queue queue(gpu);
  for (int i = 0; i < 20; i++) {
    const Signal done;
    queue.barrier_and(nullptr, &done);
    const pid_t child = fork();
    if (child == 0) {
      // As after any fork of a threaded program: little, then leave.
      const int fd = open("/dev/null", 0);
      close(fd);
      _exit(fd >= 0 ? 0 : 1);
    }
    int status = -1;
    expect(waitpid(child, &status, 0) == child && status == 0, "a forked child ends");
    expect(done.wait(HSA_WAIT_STATE_BLOCKED), "the parent's queue goes on");
  }
}

const std::map<std::string, std::function<void(Gpu&)>> kChecks = {
    {"barriers-busy", barriers_busy},
    {"barriers-interrupt", barriers_interrupt},
    {"kernel-cost", kernel_cost},
    {"fill", fill},
    {"overlap", overlap},
    {"dependencies", dependencies},
    {"masks", masks},
    {"hold", hold},
    {"copies", copies},
    {"many-signals", many_signals},
    {"create-destroy", create_and_destroy},
    {"fork", fork_safety}};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) give_up("usage: apu_check CHECK...");
  Gpu gpu;
  for (int i = 1; i < argc; i++) {
    const auto check = kChecks.find(argv[i]);
    if (check == kChecks.end()) give_up(std::string("no check called ") + argv[i]);
    check->second(gpu);
    std::printf("ok: %s\n", argv[i]);
  }
  return 0;
}
