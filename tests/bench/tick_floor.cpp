// SPDX-License-Identifier: MIT
// The least that a sampler can cost: one kept-open schedstat read per sampled thread, at a rate.
//
// Starts that many processes that did a little and sleep from then on, and prints their PIDs. For
// each line "TICKS PERIOD_MS" on standard input it then reads all of them TICKS times and prints
// the CPU time in nanoseconds that this took it, per tick.
#include <fcntl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

std::int64_t cpu_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

[[noreturn]] void sleep_after_some_work() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Enough to be one whose waits matter.
  while (cpu_ns(CLOCK_PROCESS_CPUTIME_ID) < 500'000) {
  }
  for (;;) ::pause();
}

/// The three numbers of a schedstat; their sum, so that nothing is left out.
std::uint64_t read_once(int fd) {
  std::array<char, 96> text{};
  const auto size = ::pread(fd, text.data(), text.size(), 0);
  if (size <= 0) return 0;
  std::uint64_t sum = 0;
  const char* from = text.data();
  const char* const end = text.data() + size;
  for (int field = 0; field < 3; ++field) {
    std::uint64_t value = 0;
    while (from < end && *from == ' ') ++from;
    from = std::from_chars(from, end, value).ptr;
    sum += value;
  }
  return sum;
}

std::int64_t cpu_per_tick(const std::vector<int>& fds, int ticks,
                          std::chrono::milliseconds period) {
  std::uint64_t sum = 0;
  const auto begin = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
  auto next = std::chrono::steady_clock::now();
  for (int tick = 0; tick < ticks; ++tick) {
    for (const int fd : fds) sum += read_once(fd);
    std::this_thread::sleep_until(next += period);
  }
  if (sum == 0 && !fds.empty()) std::fprintf(stderr, "nothing was read\n");
  return (cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - begin) / ticks;
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc == 2 ? std::atoi(argv[1]) : 0;
  if (count < 1) {
    std::fprintf(stderr, "usage: %s PROCESSES\n", argv[0]);
    return 2;
  }
  std::vector<int> fds;
  for (int i = 0; i < count; ++i) {
    const auto pid = ::fork();
    if (pid == 0) sleep_after_some_work();
    const auto path = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid);
    fds.push_back(::open((path + "/schedstat").c_str(), O_RDONLY | O_CLOEXEC));
    if (pid < 0 || fds.back() < 0) {
      std::perror("start a process");
      return 1;
    }
    std::cout << pid << (i + 1 < count ? ' ' : '\n');
  }
  std::cout.flush();
  int ticks = 0;
  int period = 0;
  while (std::cin >> ticks >> period && ticks > 0)
    std::cout << cpu_per_tick(fds, ticks, std::chrono::milliseconds(period)) << std::endl;
  std::quick_exit(0);
}
