// SPDX-License-Identifier: MIT
// What it costs on this machine to be woken 1,000 times a second, and nothing else: the floor of
// whatever watches doorbells.
//
// wake_floor futex|doorbell SECONDS: prints, as JSON, the CPU time of the thread that is woken in
// percent of a core: by a futex, or by a store to a page that the software APU's own watcher has
// write-protected.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "device/shared_device.h"
#include "queue/doorbell_watch.h"

namespace {

using namespace apusched::softapu;
using std::chrono::milliseconds;

constexpr milliseconds kPeriod{1};
constexpr std::size_t kBytes = 8192;  // as the doorbells of a process

Nanoseconds cpu_of_this_thread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds{time.tv_sec} + Nanoseconds{time.tv_nsec};
}

void sleep_until(Nanoseconds time) {
  const timespec until{time.count() / 1'000'000'000, time.count() % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
}

struct Futex {
  std::atomic<std::uint32_t> word{0};
  std::uint32_t seen = 0;
  void wait() {
    futex_wait(word, seen, Nanoseconds::max());
    seen = word.load();
  }
  void ring() {
    word++;
    futex_wake_all(word);
  }
};

struct Doorbell {
  DoorbellWatch watch;
  std::uint64_t* mine = nullptr;
  std::uint64_t* watched = nullptr;
  std::uint64_t seen = 0;

  Doorbell() {
    const int file = memfd_create("doorbells", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, kBytes) != 0) std::exit(1);
    for (auto** mapping : {&mine, &watched})
      *mapping = static_cast<std::uint64_t*>(
          mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    if (!watch.add(watched, kBytes)) {
      std::fprintf(stderr, "wake_floor: no userfaultfd for shared memory here\n");
      std::exit(1);
    }
  }
  void wait() {
    if (!watch.arm()) std::exit(1);
    std::size_t faults = 0;
    if (std::atomic_ref(*mine).load() == seen) faults = watch.wait(Nanoseconds::max());
    watch.disarm();
    // The store is about to land; armed before, it would fault again.
    while (faults > 0 && std::atomic_ref(*mine).load() == seen)
      watch.wait(std::chrono::microseconds{20});
    seen = std::atomic_ref(*mine).load();
  }
  void ring() { std::atomic_ref(*watched).fetch_add(1); }
};

template <class Bell>
int measure(std::chrono::seconds duration) {
  Bell bell;
  std::atomic<bool> stop{false};
  Nanoseconds used{0};
  std::uint64_t wakes = 0;
  std::thread waiter([&] {
    const Nanoseconds begin = cpu_of_this_thread();
    for (; !stop; wakes++) bell.wait();
    used = cpu_of_this_thread() - begin;
  });
  const Nanoseconds begin = monotonic_now();
  for (Nanoseconds next = begin; next - begin < duration; next += kPeriod) {
    sleep_until(next);
    bell.ring();
  }
  stop = true;
  bell.ring();
  waiter.join();
  const Nanoseconds took = monotonic_now() - begin;
  std::printf("{\"wakes\": %llu, \"seconds\": %.3f, \"cpu_percent\": %.3f}\n",
              static_cast<unsigned long long>(wakes), static_cast<double>(took.count()) / 1e9,
              static_cast<double>(used.count()) * 100 / static_cast<double>(took.count()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::chrono::seconds duration{argc == 3 ? std::atoi(argv[2]) : 0};
  const std::string_view kind = argc == 3 ? argv[1] : "";
  if (duration.count() > 0 && kind == "futex") return measure<Futex>(duration);
  if (duration.count() > 0 && kind == "doorbell") return measure<Doorbell>(duration);
  std::fprintf(stderr, "usage: wake_floor futex|doorbell SECONDS\n");
  return 2;
}
