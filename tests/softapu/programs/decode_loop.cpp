// SPDX-License-Identifier: MIT
// A workload shaped like the decode loop of a language model: at a token rate, a few small kernels
// in order, submitted by one thread and awaited by another. Prints what it felt itself as JSON
// lines: {"event": "ready"}, "report" every --report seconds, "final" at the end.
// SIGTERM, SIGINT: final line, status 0. SIGUSR1: one more (idle) thread.
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "programs/distribution.h"
#include "programs/hsa_program.h"

namespace {

using namespace apusched::softapu;
using nlohmann::json;
using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

struct Options {
  double rate = 20;          // tokens per second, 0: as fast as possible
  unsigned kernels = 8;      // per token
  unsigned workgroups = 12;  // per kernel
  std::string kernel = "work_10us";
  std::string kernel_directory;
  double duration = 0;  // seconds, 0: until a signal
  double report = 0;    // seconds, 0: never
  bool busy_wait = false;
};

struct Measured {
  Distribution dispatch;  // token latency without the time its kernels took on the device
  Distribution token;     // first submission -> the waiting thread has seen the completion
  Distribution lateness;  // of the submitting thread against the token clock
};

class Loop {
 public:
  Loop(Gpu& gpu, const Options& options)
      : gpu_(gpu), options_(options), queue_(gpu, 256, true), kernel_(gpu.kernel(options.kernel)) {
    submitter_ = std::thread([this] { submit_tokens(); });
    waiter_ = std::thread([this] { await_tokens(); });
  }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    submitter_.join();
    waiter_.join();
  }
  void add_thread() {
    extras_.push_back(std::make_unique<std::jthread>([this](const std::stop_token& token) {
      pthread_setname_np(pthread_self(), "decode-extra");
      std::unique_lock lock(mutex_);
      extra_changed_.wait(lock, token, [] { return false; });
    }));
  }
  // What was measured since the last call, or since the start.
  json since_last() {
    const std::lock_guard lock(mutex_);
    const json out = describe(window_);
    window_ = {};
    return out;
  }
  json in_all() {
    const std::lock_guard lock(mutex_);
    return describe(all_);
  }

 private:
  void submit_tokens();
  void await_tokens();
  static json describe(const Measured& measured) {
    return {{"dispatch_latency_us", measured.dispatch.summary()},
            {"token_latency_us", measured.token.summary()},
            {"submit_lateness_us", measured.lateness.summary()}};
  }
  void record(nanoseconds token, nanoseconds on_device);

  Gpu& gpu_;
  const Options& options_;
  Queue queue_;
  Kernel kernel_;
  Signal first_, last_;
  std::mutex mutex_;  // everything below
  std::condition_variable changed_;
  std::condition_variable_any extra_changed_;
  bool stop_ = false;
  bool in_flight_ = false;
  Clock::time_point submitted_;
  Measured window_, all_;
  std::vector<std::unique_ptr<std::jthread>> extras_;
  std::thread submitter_, waiter_;
};

void Loop::submit_tokens() {
  pthread_setname_np(pthread_self(), "decode-submit");
  const auto period = options_.rate > 0
                          ? nanoseconds{static_cast<std::int64_t>(1e9 / options_.rate)}
                          : nanoseconds{0};
  auto next = Clock::now();
  for (;;) {
    next = std::max(next + period, Clock::now());
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stop_ || !in_flight_; });
    if (!stop_ && period.count() > 0) changed_.wait_until(lock, next, [&] { return stop_; });
    if (stop_) return;
    const auto late = Clock::now() - next;
    window_.lateness.add(late);
    all_.lateness.add(late);
    first_.set(1);
    last_.set(1);
    submitted_ = Clock::now();
    in_flight_ = true;
    lock.unlock();
    changed_.notify_all();
    for (unsigned i = 0; i < options_.kernels; i++) {
      const bool is_last = i + 1 == options_.kernels;
      const Signal* done = is_last ? &last_ : i == 0 ? &first_ : nullptr;
      queue_.dispatch({kernel_, options_.workgroups}, done);
    }
  }
}

void Loop::await_tokens() {
  pthread_setname_np(pthread_self(), "decode-wait");
  const auto how = options_.busy_wait ? HSA_WAIT_STATE_ACTIVE : HSA_WAIT_STATE_BLOCKED;
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stop_ || in_flight_; });
    if (!in_flight_) return;
    const auto since = submitted_;
    lock.unlock();
    if (!last_.wait(how)) give_up("stall: a token did not complete in 30 s");
    const auto now = Clock::now();
    const DeviceTimes last = device_times(gpu_, last_);
    const DeviceTimes first = options_.kernels > 1 ? device_times(gpu_, first_) : last;
    lock.lock();
    record(now - since, last.end - first.start);
    in_flight_ = false;
    lock.unlock();
    changed_.notify_all();
  }
}

void Loop::record(nanoseconds token, nanoseconds on_device) {
  for (Measured* measured : {&window_, &all_}) {
    measured->token.add(token);
    measured->dispatch.add(std::max(token - on_device, nanoseconds{0}));
  }
}

// Run queue delay of every thread of this process (/proc/.../schedstat: ns on CPU, ns waiting).
json thread_statistics() {
  json threads = json::array();
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    std::string name;
    std::uint64_t on_cpu = 0;
    std::uint64_t delay = 0;
    std::getline(std::ifstream(task.path() / "comm"), name);
    std::ifstream(task.path() / "schedstat") >> on_cpu >> delay;
    threads.push_back({{"tid", std::stol(task.path().filename())},
                       {"name", name},
                       {"on_cpu_ns", on_cpu},
                       {"run_delay_ns", delay}});
  }
  return threads;
}

void print(const char* event, json body) {
  body["event"] = event;
  body["pid"] = getpid();
  body["threads"] = thread_statistics();
  std::cout << body.dump() << std::endl;
}

// Blocks until it is time to say something; the signal, or 0 for the time.
int next_signal(const sigset_t& set, std::optional<Clock::time_point> until) {
  if (!until) return sigwaitinfo(&set, nullptr);
  const auto left = std::max<nanoseconds>(*until - Clock::now(), nanoseconds{0});
  const timespec timeout{static_cast<time_t>(left.count() / 1'000'000'000),
                         static_cast<long>(left.count() % 1'000'000'000)};
  return std::max(sigtimedwait(&set, nullptr, &timeout), 0);
}

nanoseconds from_seconds(double seconds) {
  return nanoseconds{static_cast<std::int64_t>(seconds * 1e9)};
}

void watch(Loop& loop, const Options& options, const sigset_t& set) {
  std::optional<Clock::time_point> end;
  std::optional<Clock::time_point> report;
  if (options.duration > 0) end = Clock::now() + from_seconds(options.duration);
  if (options.report > 0) report = Clock::now() + from_seconds(options.report);
  for (;;) {
    auto until = end;
    if (report && (!until || *report < *until)) until = report;
    const int number = next_signal(set, until);
    if (number == SIGTERM || number == SIGINT) return;
    if (number == SIGUSR1) loop.add_thread();
    if (end && Clock::now() >= *end) return;
    if (report && Clock::now() >= *report) {
      *report += from_seconds(options.report);
      print("report", loop.since_last());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"An inference-like workload for a GPU"};
  Options options;
  app.add_option("--rate", options.rate, "tokens per second, 0: no pause")
      ->check(CLI::Range(0, 100000));
  app.add_option("--kernels-per-token", options.kernels)->check(CLI::Range(1, 128));
  app.add_option("--workgroups", options.workgroups, "per kernel")->check(CLI::Range(1, 1 << 20));
  app.add_option("--kernel", options.kernel, "noop, work_1us, work_10us, work_100us, work_1ms");
  app.add_option("--kernel-directory", options.kernel_directory, "of kernels-<gfx>.hsaco");
  app.add_option("--duration", options.duration, "seconds, 0: until a signal");
  app.add_option("--report", options.report, "seconds between reports, 0: none");
  app.add_flag("--busy-wait", options.busy_wait, "spin for completions");
  CLI11_PARSE(app, argc, argv);
  // Before any thread exists, so that all of them block the signals.
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&set, number);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  Gpu gpu;
  gpu.load_kernels(options.kernel_directory);
  Loop loop(gpu, options);
  print("ready", {{"gpu", gpu.name()}});
  watch(loop, options, set);
  loop.stop();
  print("final", loop.in_all());
  return 0;
}
