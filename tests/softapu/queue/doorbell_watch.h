// SPDX-License-Identifier: MIT
// Tells when a client stores to its doorbell pages, without polling. A doorbell is a plain store
// in the client: nobody can hook it, but userfaultfd can write-protect the pages.
//
// Protocol (no doorbell is lost):
//   engine   1 seen = wake word   2 arm()   3 look at every doorbell   4 wait() if word == seen
//   client   store -> fault while armed, and waits in the kernel
//   engine   5 wait() returns which doorbell   6 disarm, which lets the store go ahead
// A store before 2 is seen in 3: write-protecting flushes the TLBs of all CPUs, so every earlier
// store is visible after it. A store after 2 faults, and a fault that nobody has read ends 4.
// A fault counts as a ring: what the client wrote before its store is visible already, and need
// not wait for the client to be scheduled again. The engine must not arm again before that store
// has landed, or the two could repeat without end: it looks at short, growing intervals instead,
// for a bounded time (a stopped client never stores), after which arming again is harmless: it
// costs one more fault.
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
  // Until a store to an armed page, wake(), or `timeout` (Nanoseconds::max(): never). Appends to
  // `rung` where in their mapping the stores go, in bytes. One thread at a time.
  void wait(std::chrono::nanoseconds timeout, std::vector<std::size_t>& rung);
  // Ends the wait() of now, or the next. Any thread.
  void wake() const;

 private:
  struct Region {
    void* address;
    std::size_t bytes;
  };
  bool open_uffd();
  bool protect(const Region& region, bool on) const;
  void read_faults(std::vector<std::size_t>& rung);

  std::mutex regions_mutex_;
  std::vector<Region> regions_;
  bool usable_ = true;
  int uffd_ = -1;
  int wake_fd_ = -1;
};

}  // namespace apusched::softapu
