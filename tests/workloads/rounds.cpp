// SPDX-License-Identifier: MIT
#include "workloads/rounds.h"

#include <pthread.h>

#include <algorithm>

namespace apusched::workloads {

using softapu::device_times;
using softapu::DeviceTimes;
using softapu::system_time;
using std::chrono::nanoseconds;

namespace {

constexpr std::uint32_t kQueuePackets = 1024;

nanoseconds period_of(const Shape& shape) {
  return nanoseconds{shape.rate_hz > 0 ? static_cast<std::int64_t>(1e9 / shape.rate_hz) : 0};
}

}  // namespace

Rounds::Rounds(softapu::Gpu& gpu, const Options& options)
    : gpu_(gpu),
      options_(options),
      queue_(gpu, kQueuePackets, true),
      kernel_(gpu.kernel("timed")),
      arguments_(static_cast<std::uint64_t*>(gpu.allocate(sizeof(std::uint64_t)))) {
  *arguments_ = static_cast<std::uint64_t>(options.shape.per_workgroup.count());
  for (std::uint32_t i = 0; i < options.shape.in_flight; i++) {
    all_.push_back(std::make_unique<Round>());
    idle_.push_back(all_.back().get());
  }
  submitter_ = std::thread([this] { submit_rounds(); });
  waiter_ = std::thread([this] { await_rounds(); });
}

Rounds::~Rounds() {
  stop();
  gpu_.release(arguments_);
}

void Rounds::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (submitter_.joinable()) submitter_.join();
  {
    const std::lock_guard lock(mutex_);
    submitted_all_ = true;
  }
  changed_.notify_all();
  if (waiter_.joinable()) waiter_.join();
}

// Waits for the round's time and for one that is idle; null: the end.
Rounds::Round* Rounds::next_round() {
  const nanoseconds period = period_of(options_.shape);
  std::unique_lock lock(mutex_);
  if (period.count() > 0) changed_.wait_until(lock, due_, [&] { return stop_; });
  changed_.wait(lock, [&] { return stop_ || !idle_.empty(); });
  if (stop_) return nullptr;
  if (period.count() > 0) {
    // A period whose turn passed while earlier rounds were under way gets no round.
    const auto late = (Clock::now() - due_) / period;
    if (is_measured(due_)) missed_ += static_cast<std::uint64_t>(std::max<std::int64_t>(late, 0));
    due_ += (late + 1) * period;
  }
  Round* round = idle_.back();
  idle_.pop_back();
  return round;
}

void Rounds::submit(Round& round) {
  round.first.set(1);
  round.last.set(1);
  round.submitted = Clock::now();
  round.device = system_time();
  {
    const std::lock_guard lock(mutex_);
    under_way_.push_back(&round);
  }
  changed_.notify_all();
  for (std::uint32_t i = 0; i < options_.shape.kernels; i++) {
    const bool is_last = i + 1 == options_.shape.kernels;
    const softapu::Signal* done = is_last ? &round.last : i == 0 ? &round.first : nullptr;
    queue_.dispatch({kernel_, options_.shape.workgroups, 64, arguments_}, done);
  }
}

void Rounds::submit_rounds() {
  pthread_setname_np(pthread_self(), (options_.shape.name + "-submit").c_str());
  while (Round* round = next_round()) submit(*round);
}

void Rounds::await_rounds() {
  pthread_setname_np(pthread_self(), (options_.shape.name + "-wait").c_str());
  const auto how = options_.busy_wait ? HSA_WAIT_STATE_ACTIVE : HSA_WAIT_STATE_BLOCKED;
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return submitted_all_ || !under_way_.empty(); });
    if (under_way_.empty()) break;
    Round* round = under_way_.front();
    under_way_.pop_front();
    lock.unlock();
    if (!round->last.wait(how)) softapu::give_up("stall: a round did not complete in 30 s");
    record(*round);
    lock.lock();
    idle_.push_back(round);
    lock.unlock();
    changed_.notify_all();
  }
  ended_ = Clock::now();
}

bool Rounds::is_measured(Clock::time_point begun) const {
  return begun - started_ >= options_.skip;
}

void Rounds::record(const Round& round) {
  if (!is_measured(round.submitted)) return;
  const auto now = Clock::now();
  const nanoseconds device_now = system_time();
  const DeviceTimes last = device_times(gpu_, round.last);
  const DeviceTimes first = options_.shape.kernels > 1 ? device_times(gpu_, round.first) : last;
  // The runtime fits the device's clock to the host's: off by some microseconds, never negative.
  const nanoseconds none{0};
  dispatch_.add(std::max(none, first.start - round.device));
  completion_.add(std::max(none, device_now - last.end));
  round_.add(now - round.submitted);
  rounds_++;
}

nlohmann::json Rounds::summary() const {
  const std::chrono::duration<double> lasted = ended_ - started_ - options_.skip;
  return {{"rounds", rounds_},
          {"kernels", rounds_ * options_.shape.kernels},
          {"missed_periods", missed_},
          {"seconds", lasted.count()},
          {"dispatch_latency_us", dispatch_.summary()},
          {"completion_latency_us", completion_.summary()},
          {"round_latency_us", round_.summary()}};
}

}  // namespace apusched::workloads
