// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "agent/hsa_tables.hpp"

/// An HSA runtime of which there is little more than the table that it gives to tools. One per
/// process, because its functions take no context. What the agent must never do is counted in
/// `violations`.
namespace apusched::fake {

inline constexpr hsa_agent_t kCpu{1};
inline constexpr hsa_agent_t kGpu{2};

struct FakeQueue {
  hsa_queue_t queue{};
  std::atomic<std::uint64_t> written{0}, taken{0};
  std::atomic<int> calls_under_way{0};
  bool is_intercept = false;
  hsa_amd_queue_intercept_handler handler = nullptr;
  void* handler_data = nullptr;
  // Guarded by FakeHsa::mutex.
  std::vector<std::uint32_t> mask;  // empty: all CUs
  hsa_amd_queue_priority_t priority = HSA_AMD_QUEUE_PRIORITY_NORMAL;
  unsigned mask_changes = 0, priority_changes = 0;
};

class FakeHsa {
 public:
  /// As after hsa_init: a GPU, no queues.
  void reset();

  HsaApiTable* table() { return &container_.root; }
  CoreApiTable& core() { return container_.core; }
  AmdExtTable& amd() { return container_.amd_ext; }

  // What the program does, through the table as it is.
  hsa_queue_t* make(hsa_queue_type32_t type = HSA_QUEUE_TYPE_MULTI, hsa_status_t* status = nullptr);
  hsa_status_t destroy(hsa_queue_t* queue) { return core().hsa_queue_destroy_fn(queue); }
  hsa_status_t set_mask(hsa_queue_t* queue, std::uint32_t word);
  std::uint32_t get_mask(hsa_queue_t* queue);
  void* allocate(std::size_t bytes, hsa_status_t* status = nullptr);

  // What it has come to.
  std::vector<std::uint32_t> mask_of(const hsa_queue_t* queue);
  hsa_amd_queue_priority_t priority_of(const hsa_queue_t* queue);
  unsigned mask_changes_of(const hsa_queue_t* queue);
  std::shared_ptr<FakeQueue> find(const hsa_queue_t* queue);
  std::size_t live();

  std::mutex mutex;
  std::map<const hsa_queue_t*, std::shared_ptr<FakeQueue>> queues;  // guarded by mutex
  std::atomic<unsigned> violations{0};
  std::atomic<hsa_status_t> mask_answer{HSA_STATUS_SUCCESS};
  std::atomic<std::uint32_t> base_mask{0xFFF};  // what HSA_CU_MASK has left
  std::uint64_t next_id = 1;                    // guarded by mutex
  hsa_queue_t* cooperative = nullptr;           // guarded by mutex

 private:
  HsaApiTableContainer container_;
};

FakeHsa& hsa();

}  // namespace apusched::fake
