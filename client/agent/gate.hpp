// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/settings.hpp"

namespace apusched::agent {

inline constexpr Nanoseconds kMaxGate{agent_abi::kMaxGateNs};

/// Decides when submissions wait. Pure; owned by the agent's thread.
///
/// Whatever is wished: closed for kMaxGate at most, and after that open for as long as it was
/// closed. A wish that comes too early is kept for when its time has come.
class GatePolicy {
 public:
  struct Verdict {
    Nanoseconds closed_until{0};  ///< 0: open
    Nanoseconds look_again{0};    ///< 0: not before the wish changes
  };
  [[nodiscard]] Verdict decide(Nanoseconds now, Nanoseconds wished_until) noexcept;

 private:
  Nanoseconds closed_since_{0}, closed_until_{0};  // of the last time that it was closed
};

/// Where the program's threads wait. Any thread; nothing is allocated, no lock is held.
class Gate {
 public:
  /// One relaxed load where the gate is open.
  void pass() noexcept {
    if (closed_until_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      wait();
  }
  /// Agent's thread. 0: open at once.
  void close_until(Nanoseconds until) noexcept;

  [[nodiscard]] std::uint64_t waits() const noexcept {
    return waits_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] Nanoseconds waited() const noexcept {
    return Nanoseconds{waited_.load(std::memory_order_relaxed)};
  }
  void reset() noexcept;

 private:
  void wait() noexcept;

  // Times in nanoseconds of CLOCK_MONOTONIC. A gate whose time is over opens by itself: its first
  // passer sees that, so that a stuck agent holds nobody back.
  std::atomic<std::int64_t> closed_until_{0};
  std::atomic<std::uint32_t> generation_{0};  // what they wait on; changes with closed_until_
  std::atomic<std::uint64_t> waits_{0};
  std::atomic<std::int64_t> waited_{0};
};

}  // namespace apusched::agent
