// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>

#include <atomic>
#include <vector>

#include "agent/host.hpp"
#include "agent/link.hpp"
#include "agent/reporter.hpp"
#include "agent/settings.hpp"
#include "agent/socket_watch.hpp"

namespace apusched::agent {

/// The agent's one thread: keeps the connection, applies what the daemon asks for, reports. Nobody
/// else calls into the runtime on the agent's behalf.
///
/// The thread owns everything below but `stop_`. start(), stop() and leave_to_parent() are for the
/// thread that loads and unloads the library.
class Agent {
 public:
  /// `at_exit` calls stop(true). It is registered once more after the first change of a priority:
  /// ROCr looks priorities up in a map that it makes at that time, and so destroys before what was
  /// registered earlier.
  Agent(Host& host, Environment environment, const agent_abi::Hello& hello, void (*at_exit)());

  /// False: no thread or no eventfd to be had.
  [[nodiscard]] bool start() noexcept;
  /// Ends the thread. False: it does not end (within two seconds, where `bounded`), because the
  /// driver keeps it.
  bool stop(bool bounded) noexcept;
  /// In a child of fork(), where the thread is not.
  void leave_to_parent() noexcept;

 private:
  static void* enter(void* self) noexcept;
  void run() noexcept;
  Nanoseconds turn(Nanoseconds now) noexcept;
  void wait(Nanoseconds now, Nanoseconds until) noexcept;

  void connect(Nanoseconds now) noexcept;
  void retry_later(Nanoseconds now, bool is_answering) noexcept;
  void receive(Nanoseconds now) noexcept;
  void read_page(Nanoseconds now) noexcept;
  void use(const Settings& settings) noexcept;
  void release(Nanoseconds now) noexcept;

  void bring_queues(Nanoseconds now) noexcept;
  void bring_gate(Nanoseconds now) noexcept;
  void look_at_queues(Nanoseconds now) noexcept;
  void report(Nanoseconds now) noexcept;

  Host& host_;
  const Environment environment_;
  const agent_abi::Hello hello_;
  void (*at_exit_)();  // null: registered
  std::atomic<bool> stop_{false};
  pthread_t thread_{};

  Link link_;
  SocketWatch watch_;
  Reporter reporter_;
  GatePolicy gate_policy_;
  Settings settings_;
  std::uint32_t sequence_ = 0;  // of the control page that settings_ are from
  std::uint32_t settled_ = 0;   // what was reached of that
  std::uint32_t retries_ = 0;   // in a row
  bool has_work_ = true;        // settings, queues or the program's wishes have changed
  bool has_news_ = false;       // to be reported
  std::uint64_t random_;
  std::vector<hsa_queue_t*> handles_;
  // When to do what; 0: not at all.
  Nanoseconds connect_at_{1}, answer_until_{0}, queues_at_{0}, gate_at_{0}, sample_at_{0},
      measure_at_{0};
};

}  // namespace apusched::agent
