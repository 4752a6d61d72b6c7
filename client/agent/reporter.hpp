// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "agent/host.hpp"

namespace apusched::agent {

/// Looks at the queues and keeps the telemetry. Owned by the agent's thread.
class Reporter {
 public:
  explicit Reporter(Host& host) : host_(host) {}

  /// A sample. Where packets wait, it begins to measure how long, unless that is under way.
  void sample(Nanoseconds now) noexcept;
  /// While is_measuring(): looks whether they have been taken. Returns when to look again, 0: done.
  Nanoseconds measure(Nanoseconds now) noexcept;
  [[nodiscard]] bool is_measuring() const noexcept { return measured_.queue != nullptr; }
  void stop_measuring() noexcept { measured_ = {}; }

  /// Writes the page. `settled`: `settings` with this sequence is in force as far as it can be.
  void write(void* page, const Settings& settings, std::uint32_t settled, Nanoseconds now) noexcept;

 private:
  struct Measured {
    const hsa_queue_t* queue = nullptr;
    std::uint64_t id = 0, until_taken = 0;
    Nanoseconds since{0};
  };
  void note_wait(Nanoseconds wait) noexcept;
  void add_queue(const QueueView& queue) noexcept;
  void add_settings(const Settings& settings) noexcept;

  Host& host_;
  agent_abi::Telemetry telemetry_{};
  std::vector<QueueView> views_;
  Measured measured_;
  std::uint64_t samples_ = 0, busy_samples_ = 0, backlog_sum_ = 0, wait_count_ = 0;
};

}  // namespace apusched::agent
