// SPDX-License-Identifier: MIT
#include "agent/gate.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>

namespace apusched::agent {

GatePolicy::Verdict GatePolicy::decide(Nanoseconds now, Nanoseconds wished_until) noexcept {
  const bool closed = now < closed_until_;
  if (wished_until <= now) {
    // Opened early: closed for less long than it was to be.
    if (closed) closed_until_ = now;
    return {};
  }
  if (closed) {
    closed_until_ = std::min(wished_until, closed_since_ + kMaxGate);
    const bool more = wished_until > closed_until_;
    return {closed_until_, more ? closed_until_ + (closed_until_ - closed_since_) : Nanoseconds{0}};
  }
  const Nanoseconds earliest = closed_until_ + (closed_until_ - closed_since_);
  if (now < earliest) return {Nanoseconds{0}, earliest < wished_until ? earliest : Nanoseconds{0}};
  closed_since_ = now;
  closed_until_ = std::min(wished_until, now + kMaxGate);
  const bool more = wished_until > closed_until_;
  return {closed_until_, more ? closed_until_ + (closed_until_ - closed_since_) : Nanoseconds{0}};
}

void Gate::close_until(Nanoseconds until) noexcept {
  if (closed_until_.exchange(until.count(), std::memory_order_release) == until.count()) return;
  generation_.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &generation_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Gate::wait() noexcept {
  // A program does not expect errno to change by submitting a packet.
  const int saved = errno;
  const Nanoseconds begin = monotonic_now();
  const Nanoseconds latest = begin + kMaxGate;
  bool waited = false;
  for (;;) {
    const std::uint32_t generation = generation_.load(std::memory_order_acquire);
    std::int64_t until = closed_until_.load(std::memory_order_acquire);
    const Nanoseconds now = monotonic_now();
    if (until == 0 || now >= latest) break;
    if (now.count() >= until) {
      closed_until_.compare_exchange_strong(until, 0, std::memory_order_relaxed);
      break;
    }
    waited = true;
    const std::int64_t wake = std::min(until, latest.count());
    const timespec deadline{.tv_sec = wake / 1'000'000'000, .tv_nsec = wake % 1'000'000'000};
    // BITSET: its time is a moment of CLOCK_MONOTONIC.
    syscall(SYS_futex, &generation_, FUTEX_WAIT_BITSET_PRIVATE, generation, &deadline, nullptr,
            FUTEX_BITSET_MATCH_ANY);
  }
  if (waited) {
    waits_.fetch_add(1, std::memory_order_relaxed);
    waited_.fetch_add((monotonic_now() - begin).count(), std::memory_order_relaxed);
  }
  errno = saved;
}

void Gate::reset() noexcept {
  close_until(Nanoseconds{0});
  waits_.store(0, std::memory_order_relaxed);
  waited_.store(0, std::memory_order_relaxed);
}

}  // namespace apusched::agent
