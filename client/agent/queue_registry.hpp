// SPDX-License-Identifier: MIT
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "agent/hsa_tables.hpp"
#include "agent/masks.hpp"
#include "agent/settings.hpp"

namespace apusched::agent {

/// What does not change while a queue lives.
struct QueueFacts {
  hsa_queue_t* handle = nullptr;
  std::uint64_t id = 0;
  std::size_t gpu = 0;
  CuMask base;  ///< what HSA_CU_MASK left of the GPU
  bool pairs = false;
  bool serial = false;      ///< an intercept queue of ours
  bool left_alone = false;  ///< cooperative, or of a GPU that is not in the list
};

/// What is in force on a queue, and what the program wants of it. Changed only by who holds the
/// queue (QueueRegistry::hold).
struct QueueLevers {
  CuMask program_mask, our_mask, mask_in_force;
  bool mask_is_ours = false;
  hsa_amd_queue_priority_t program_priority = HSA_AMD_QUEUE_PRIORITY_NORMAL;
  agent_abi::Priority our_priority = agent_abi::Priority::leave;  ///< in force
  agent_abi::Setting mask{}, priority{};
  Nanoseconds not_before{0};   ///< the next change, so that the kernel re-maps queues seldom
  std::uint32_t failures = 0;  ///< in a row

  /// Normal is what a queue has anyway, and HIP sets it on each: no wish of the program's.
  [[nodiscard]] bool has_own_priority() const {
    return program_priority != HSA_AMD_QUEUE_PRIORITY_NORMAL;
  }
};

struct Indices {
  std::uint64_t written = 0, taken = 0;
};

struct QueueView {
  QueueFacts facts;
  QueueLevers levers;
  Indices indices;
};

/// The program's live queues. Any thread; the only owner of what is in it.
///
/// A queue that somebody holds is neither destroyed nor held by somebody else: hold() and take()
/// wait until it is free.
class QueueRegistry {
 public:
  /// False: `limit` (0: none) is reached; counted. True: add() or give_up() follows.
  [[nodiscard]] bool reserve(std::uint32_t limit) noexcept;
  void give_up() noexcept;
  /// Without memory for it the queue stays unknown, and untouched.
  void add(const QueueFacts& facts) noexcept;
  /// Cooperative queues: the runtime gives the same one to several callers. Needs no reserve().
  void add_shared(const QueueFacts& facts) noexcept;

  /// Out of the registry, its indices added to the totals; nothing: unknown, or shared and still in
  /// use. `runtime` reads the indices.
  [[nodiscard]] std::optional<QueueView> take(hsa_queue_t* queue, const Runtime& runtime) noexcept;
  void put_back(const QueueView& queue) noexcept;

  /// Calls `change(facts, levers)` with the queue held and no lock taken; false: an unknown queue,
  /// or one that this very thread holds already (a tool below us that calls back).
  template <class Change>
  bool hold(const hsa_queue_t* queue, Change&& change) noexcept {
    QueueFacts facts;
    QueueLevers levers;
    if (!begin(queue, &facts, &levers)) return false;
    change(static_cast<const QueueFacts&>(facts), levers);
    end(queue, levers);
    return true;
  }

  /// Handles of the live queues, into a list that the caller keeps.
  void list(std::vector<hsa_queue_t*>* handles) const noexcept;
  [[nodiscard]] std::optional<QueueView> find(const hsa_queue_t* queue) const noexcept;

  /// Reads the indices of all queues; `views` gets all of them. Returns the totals of those that
  /// were destroyed before this moment: each queue is in one of the two.
  Indices look(const Runtime& runtime, std::vector<QueueView>* views) noexcept;
  /// Of one queue, by its id: the address may belong to another one by now.
  [[nodiscard]] std::optional<Indices> look(const Runtime& runtime, const hsa_queue_t* queue,
                                            std::uint64_t id) noexcept;

  [[nodiscard]] std::uint64_t refused() const noexcept;
  void reset() noexcept;

 private:
  struct Entry {
    QueueView view;
    std::thread::id holder;  // of nobody where it is free
    std::uint32_t users = 1;
  };
  using Entries = std::unordered_map<const hsa_queue_t*, Entry>;

  bool begin(const hsa_queue_t* queue, QueueFacts* facts, QueueLevers* levers) noexcept;
  void end(const hsa_queue_t* queue, const QueueLevers& levers) noexcept;
  Entries::iterator wait_until_free(const hsa_queue_t* queue, std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;
  std::condition_variable freed_;
  // Guarded by mutex_.
  Entries entries_;
  std::uint32_t counted_ = 0;  // against the limit: those being made included
  Indices destroyed_;
  std::uint64_t refused_ = 0;
};

[[nodiscard]] Indices read_indices(const Runtime& runtime, const hsa_queue_t* queue) noexcept;

}  // namespace apusched::agent
