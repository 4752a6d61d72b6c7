// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>

#include "agent/attachment.hpp"
#include "agent/gate.hpp"
#include "agent/hsa_tables.hpp"
#include "agent/memory_book.hpp"
#include "agent/poke.hpp"
#include "agent/queue_registry.hpp"

namespace apusched::agent {

/// What the program's threads meet. One per process, made at the first OnLoad and never destroyed:
/// threads may be in here while the program exits.
struct Host {
  // Written by OnLoad before the table is, and read only afterwards.
  Runtime runtime{};
  Tables tables;
  Gpus gpus;

  /// False: every call goes to the runtime as if the agent were not there (before OnLoad, after
  /// OnUnload, at exit, in a child of fork()).
  std::atomic<bool> active{false};

  // Settings that act in the program's threads; written by the agent's thread.
  std::atomic<std::uint32_t> queue_limit{0};
  std::atomic<bool> serial{false};

  Gate gate;
  MemoryBook memory;
  QueueRegistry queues;
  Attachment attachment;
  Poke poke;  ///< tells the agent's thread that something is to be done or reported

  [[nodiscard]] bool is_active() const noexcept { return active.load(std::memory_order_relaxed); }
  /// Where there is a daemon that wants to know.
  void tell() noexcept {
    if (attachment.is_attached()) poke.send();
  }
  void use(const Settings& settings) noexcept {
    queue_limit.store(settings.queue_limit, std::memory_order_relaxed);
    serial.store(settings.serial, std::memory_order_relaxed);
    memory.set_limit(settings.memory_limit_bytes);
  }
};

}  // namespace apusched::agent
