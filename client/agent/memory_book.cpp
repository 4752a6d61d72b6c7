// SPDX-License-Identifier: MIT
#include "agent/memory_book.hpp"

#include <utility>

namespace apusched::agent {

bool MemoryBook::reserve(std::uint64_t bytes) noexcept {
  std::uint64_t used = used_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t limit = limit_.load(std::memory_order_relaxed);
    if (limit != 0 && (used > limit || bytes > limit - used)) {
      refused_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    if (used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed)) return true;
  }
}

void MemoryBook::cancel(std::uint64_t bytes) noexcept {
  std::uint64_t used = used_.load(std::memory_order_relaxed);
  while (!used_.compare_exchange_weak(used, used - (bytes < used ? bytes : used),
                                      std::memory_order_relaxed)) {
  }
}

void MemoryBook::commit(const void* memory, std::uint64_t bytes) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    // What was there before was freed by a call that is not covered.
    cancel(std::exchange(live_[memory], bytes));
  } catch (...) {
    cancel(bytes);  // not enough memory to keep a book of it: it goes uncounted
  }
}

void MemoryBook::put_back(const void* memory, std::uint64_t bytes) noexcept {
  used_.fetch_add(bytes, std::memory_order_relaxed);
  commit(memory, bytes);
}

std::uint64_t MemoryBook::forget(const void* memory) noexcept {
  std::uint64_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(memory);
    if (found == live_.end()) return 0;
    bytes = found->second;
    live_.erase(found);
  }
  cancel(bytes);
  return bytes;
}

void MemoryBook::reset() noexcept {
  const std::lock_guard lock(mutex_);
  live_.clear();
  used_.store(0, std::memory_order_relaxed);
  refused_.store(0, std::memory_order_relaxed);
  limit_.store(0, std::memory_order_relaxed);
}

}  // namespace apusched::agent
