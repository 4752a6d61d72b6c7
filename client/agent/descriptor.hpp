// SPDX-License-Identifier: MIT
#pragma once

#include <unistd.h>

#include <atomic>

namespace apusched::agent {

/// A file descriptor, owned. Atomic for one reader besides the owner: the child of a fork(), which
/// closes what it has inherited. Hence also the order of things: no number is kept here after it
/// has been closed, it may be the program's by then.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { reset(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int get() const noexcept { return number_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool is_open() const noexcept { return get() >= 0; }
  void reset(int number = -1) noexcept {
    const int old = number_.exchange(-1, std::memory_order_relaxed);
    if (old >= 0) close(old);
    number_.store(number, std::memory_order_relaxed);
  }
  [[nodiscard]] int release() noexcept { return number_.exchange(-1, std::memory_order_relaxed); }

 private:
  std::atomic<int> number_{-1};
};

}  // namespace apusched::agent
