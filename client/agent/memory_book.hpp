// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace apusched::agent {

inline constexpr std::uint64_t kLargestBooked = std::uint64_t{1} << 60;

/// Live allocations of the covered calls, and their limit. Any thread.
///
/// An allocation: reserve(), the runtime's call, then commit() or cancel(). Freeing: forget()
/// before the runtime's call, because another thread may be given the same address right after it;
/// put_back() where the runtime refused to free. Sizes are at most kLargestBooked: what is above is
/// the runtime's to refuse.
class MemoryBook {
 public:
  /// 0: no limit. Acts on what is allocated from now on.
  void set_limit(std::uint64_t bytes) noexcept { limit_.store(bytes, std::memory_order_relaxed); }

  /// False: beyond the limit; counted.
  [[nodiscard]] bool reserve(std::uint64_t bytes) noexcept;
  void cancel(std::uint64_t bytes) noexcept;
  void put_back(const void* memory, std::uint64_t bytes) noexcept;
  void commit(const void* memory, std::uint64_t bytes) noexcept;
  /// Bytes that were in the book for it, 0 where it is not in there. They are no longer counted.
  std::uint64_t forget(const void* memory) noexcept;

  [[nodiscard]] std::uint64_t used() const noexcept {
    return used_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t refused() const noexcept {
    return refused_.load(std::memory_order_relaxed);
  }
  void reset() noexcept;

 private:
  std::atomic<std::uint64_t> limit_{0}, used_{0}, refused_{0};
  std::mutex mutex_;
  std::unordered_map<const void*, std::uint64_t> live_;  // guarded by mutex_
};

}  // namespace apusched::agent
