// SPDX-License-Identifier: MIT
// Tells when a client stores to its doorbell pages, without polling. A doorbell is a plain store
// in the client: nobody can hook it, but userfaultfd can write-protect the pages.
//
// Protocol (the engine and this watcher together never lose a doorbell):
//   engine   1 seen = wake word   2 arm()   3 look at every doorbell   4 sleep while word == seen
//   client   store -> fault while armed, and waits in the kernel
//   watcher  5 disarm, which lets the store go ahead   6 fault callback: bump the word, wake
// A store before 2 is seen in 3: write-protecting flushes the TLBs of all CPUs, so every earlier
// store is visible after it. A store after 2 faults, and 6 ends 4. Because 6 follows 5, an engine
// that re-armed between two steps of a late watcher is woken after its protection was taken away.
// After a fault the engine must not arm again before the store has landed, or the two could
// repeat without end: it looks at short, growing intervals instead, for a bounded time (a stopped
// client never stores), after which arming again is harmless: it costs one more fault.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace apusched::softapu {

class DoorbellWatch {
 public:
  // Called on the watcher's thread, after the pages became writable.
  using FaultCallback = std::function<void()>;

  explicit DoorbellWatch(FaultCallback on_fault);
  ~DoorbellWatch();
  DoorbellWatch(const DoorbellWatch&) = delete;
  DoorbellWatch& operator=(const DoorbellWatch&) = delete;

  // Adds a client's mapping of the doorbell pages. False: the kernel refuses (no userfaultfd, or
  // none for shared memory before Linux 5.19); then arm() never succeeds and the engine polls.
  bool add(void* address, std::size_t bytes);
  // Any thread but the watcher's. False: not armed.
  bool arm();
  void disarm();

 private:
  struct Region {
    void* address;
    std::size_t bytes;
  };
  bool open_uffd();
  void run();
  bool protect(const Region& region, bool on) const;

  FaultCallback on_fault_;
  std::mutex regions_mutex_;
  std::vector<Region> regions_;
  bool usable_ = true;
  int uffd_ = -1;
  int stop_fd_ = -1;
  std::thread thread_;
};

}  // namespace apusched::softapu
