// SPDX-License-Identifier: MIT
// Tells when a client stores to its doorbell pages, without polling. A doorbell is a plain store
// in the client: nobody can hook it, but userfaultfd can write-protect the pages.
//
// Protocol (no doorbell is lost):
//   engine   1 seen = wake word   2 arm()   3 look at every doorbell   4 wait() if word == seen
//   client   store -> fault while armed, and waits in the kernel
//   engine   5 wait() says so   6 disarm, which lets the store go ahead
// A store before 2 is seen in 3: write-protecting flushes the TLBs of all CPUs, so every earlier
// store is visible after it. A store after 2 faults, and a fault that nobody has read ends 4.
// The doorbell rings when the store lands, not when it faults: a kernel that started while its
// program still waits for a CPU would be over before the program rings again. The engine must not
// arm again before that, or the two could repeat without end: it looks at short, growing intervals
// instead, for a bounded time (a stopped client never stores), after which arming again is
// harmless: it costs one more fault.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace apusched::softapu {

class DoorbellWatch {
 public:
  DoorbellWatch();
  ~DoorbellWatch();
  DoorbellWatch(const DoorbellWatch&) = delete;
  DoorbellWatch& operator=(const DoorbellWatch&) = delete;

  // Adds a client's mapping of the doorbell pages. False: the kernel refuses (no userfaultfd, or
  // none for shared memory before Linux 5.19); then arm() never succeeds and the engine polls.
  bool add(void* address, std::size_t bytes);
  // False: not armed.
  bool arm();
  void disarm();
  // Until a store to an armed page, wake(), or `timeout` (nanoseconds::max(): never). How many
  // stores wait in the kernel. One thread at a time.
  std::size_t wait(std::chrono::nanoseconds timeout);
  // Ends the wait() of now, or the next. Any thread.
  void wake() const;

 private:
  struct Region {
    void* address;
    std::size_t bytes;
  };
  bool open_uffd();
  bool protect(const Region& region, bool on) const;
  [[nodiscard]] std::size_t read_faults() const;

  std::mutex regions_mutex_;
  std::vector<Region> regions_;
  bool usable_ = true;
  int uffd_ = -1;
  int wake_fd_ = -1;
};

}  // namespace apusched::softapu
