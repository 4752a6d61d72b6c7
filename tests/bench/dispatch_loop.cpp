// SPDX-License-Identifier: MIT
// The host side of a dispatch loop, without a GPU: every period one thread wakes, works, hands over
// to a second thread and waits for it. Latency is from the period's begin to the second thread's
// end.
//
// Commands on standard input: "begin" forgets what was measured, "end" prints a line of JSON about
// the rounds since, "trace" prints when each was due (CLOCK_MONOTONIC) and how long it took.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

/// CPU time, so that the work stays the same when somebody takes the CPU away.
void work_for(nanoseconds time) {
  const auto used = [] {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
  };
  for (const auto end = used() + time; used() < end;) {
  }
}

/// Owned by main; filled by the dispatching thread, read by the one that takes commands.
class Rounds {
 public:
  void add(Clock::time_point due, nanoseconds latency, std::uint64_t missed) {
    const std::lock_guard lock(mutex_);
    all_.push_back({due, latency});
    missed_ += missed;
  }
  void begin() {
    const std::lock_guard lock(mutex_);
    all_.clear();
    missed_ = 0;
  }
  nlohmann::json summary() {
    const std::lock_guard lock(mutex_);
    std::vector<double> sorted;
    for (const auto& round : all_) sorted.push_back(microseconds_of(round.latency));
    std::ranges::sort(sorted);
    const auto at = [&](double share) {
      return sorted.empty() ? 0.0
                            : sorted[static_cast<std::size_t>(
                                  share * static_cast<double>(sorted.size() - 1) + 0.5)];
    };
    return {{"rounds", sorted.size()}, {"p50", at(0.5)}, {"p99", at(0.99)},
            {"p99.9", at(0.999)},      {"max", at(1.0)}, {"missed", missed_}};
  }
  nlohmann::json trace() {
    const std::lock_guard lock(mutex_);
    auto result = nlohmann::json::array();
    for (const auto& round : all_)
      result.push_back({std::chrono::duration<double>(round.due.time_since_epoch()).count(),
                        microseconds_of(round.latency)});
    return result;
  }

 private:
  struct Round {
    Clock::time_point due;
    nanoseconds latency;
  };
  static double microseconds_of(nanoseconds time) {
    return std::chrono::duration<double, std::micro>(time).count();
  }
  std::mutex mutex_;
  std::vector<Round> all_;
  std::uint64_t missed_ = 0;
};

/// The second thread: does its part of a round for whoever calls.
class Completer {
 public:
  explicit Completer(nanoseconds work) : work_(work) {
    std::thread([this] { serve(); }).detach();
  }
  void complete() {
    std::unique_lock lock(mutex_);
    asked_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !asked_; });
  }

 private:
  [[noreturn]] void serve() {
    for (std::unique_lock lock(mutex_);;) {
      changed_.wait(lock, [this] { return asked_; });
      work_for(work_);
      asked_ = false;
      changed_.notify_all();
    }
  }
  const nanoseconds work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool asked_ = false;
};

[[noreturn]] void dispatch(Rounds& rounds, nanoseconds period, nanoseconds work) {
  Completer completer(work / 4);
  for (auto due = Clock::now() + period;;) {
    std::this_thread::sleep_until(due);
    work_for(work);
    completer.complete();
    const nanoseconds latency = Clock::now() - due;
    // A period whose turn passed meanwhile gets no round.
    const auto missed = latency / period;
    rounds.add(due, latency, static_cast<std::uint64_t>(missed));
    due += (missed + 1) * period;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int period = argc == 3 ? std::atoi(argv[1]) : 0;
  const int work = argc == 3 ? std::atoi(argv[2]) : 0;
  if (period < 1 || work < 1) {
    std::fprintf(stderr, "usage: %s PERIOD_US WORK_US\n", argv[0]);
    return 2;
  }
  static Rounds rounds;  // outlives the threads
  std::thread([=] { dispatch(rounds, microseconds(period), microseconds(work)); }).detach();
  std::cout << "ready" << std::endl;
  for (std::string command; std::getline(std::cin, command);) {
    if (command == "begin") rounds.begin();
    if (command == "end") std::cout << rounds.summary() << std::endl;
    if (command == "trace") std::cout << rounds.trace() << std::endl;
  }
  std::quick_exit(0);
}
