// SPDX-License-Identifier: MIT
// Submits rounds at their rate with one thread and waits for them with another, as an inference
// engine does, and measures both sides.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "softapu/programs/distribution.h"
#include "softapu/programs/hsa_program.h"
#include "workloads/shape.h"

namespace apusched::workloads {

class Rounds {
 public:
  // Starts at once. `gpu` (its kernels loaded) and `options` outlive it.
  Rounds(softapu::Gpu& gpu, const Options& options);
  // Stops.
  ~Rounds();
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;

  // No new rounds; returns when those on their way are complete. Once.
  void stop();
  // After stop(): counts and distributions.
  [[nodiscard]] nlohmann::json summary() const;

 private:
  using Clock = std::chrono::steady_clock;
  // What travels from one thread to the other; reused, so that a round makes no signals.
  struct Round {
    softapu::Signal first, last;
    Clock::time_point submitted;        // before the first packet
    std::chrono::nanoseconds device{};  // the same moment on the device's time line
  };

  void submit_rounds();
  void await_rounds();
  Round* next_round();
  void submit(Round& round);
  void record(const Round& round);
  [[nodiscard]] bool is_measured(Clock::time_point begun) const;

  softapu::Gpu& gpu_;
  const Options& options_;
  softapu::Queue queue_;
  softapu::Kernel kernel_;
  std::uint64_t* arguments_;
  std::vector<std::unique_ptr<Round>> all_;
  Clock::time_point started_ = Clock::now();
  Clock::time_point due_ = started_;  // submitting thread only
  std::mutex mutex_;                  // the five below
  std::condition_variable changed_;
  std::vector<Round*> idle_;
  std::deque<Round*> under_way_;
  bool stop_ = false;
  bool submitted_all_ = false;
  // Submitting thread, then whoever called stop().
  std::uint64_t missed_ = 0;
  // Waiting thread, then whoever called stop().
  std::uint64_t rounds_ = 0;
  softapu::Distribution dispatch_, completion_, round_;
  Clock::time_point ended_;
  std::thread submitter_, waiter_;
};

}  // namespace apusched::workloads
