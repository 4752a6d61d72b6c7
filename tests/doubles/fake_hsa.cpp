// SPDX-License-Identifier: MIT
#include "doubles/fake_hsa.hpp"

#include <sched.h>

#include <cstdlib>
#include <cstring>

namespace apusched::fake {
namespace {

hsa_status_t init() {
  return HSA_STATUS_SUCCESS;
}

hsa_status_t iterate_agents(hsa_status_t (*visit)(hsa_agent_t, void*), void* data) {
  const hsa_status_t status = visit(kCpu, data);
  return status == HSA_STATUS_SUCCESS ? visit(kGpu, data) : status;
}

hsa_status_t agent_get_info(hsa_agent_t agent, hsa_agent_info_t attribute, void* value) {
  switch (static_cast<unsigned>(attribute)) {
    case HSA_AGENT_INFO_DEVICE: {
      const auto type = agent.handle == kGpu.handle ? HSA_DEVICE_TYPE_GPU : HSA_DEVICE_TYPE_CPU;
      std::memcpy(value, &type, sizeof type);
      return HSA_STATUS_SUCCESS;
    }
    case HSA_AGENT_INFO_NAME:
      std::strcpy(static_cast<char*>(value), "gfx1035");
      return HSA_STATUS_SUCCESS;
    case HSA_AMD_AGENT_INFO_BDFID:
      *static_cast<std::uint32_t*>(value) = 0x0400;
      return HSA_STATUS_SUCCESS;
    case HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT:
      *static_cast<std::uint32_t*>(value) = 12;
      return HSA_STATUS_SUCCESS;
    default:
      return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}

hsa_status_t system_get_info(hsa_system_info_t, void* value) {
  *static_cast<std::uint16_t*>(value) = 1;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t new_queue(bool is_intercept, hsa_queue_t** queue) {
  auto made = std::make_shared<FakeQueue>();
  made->is_intercept = is_intercept;
  made->queue.size = 64;
  const std::lock_guard lock(hsa().mutex);
  made->queue.id = hsa().next_id++;
  *queue = &made->queue;
  hsa().queues[*queue] = made;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t queue_create(hsa_agent_t, std::uint32_t size, hsa_queue_type32_t type,
                          void (*)(hsa_status_t, hsa_queue_t*, void*), void*, std::uint32_t,
                          std::uint32_t, hsa_queue_t** queue) {
  if (queue == nullptr || (size & (size - 1)) != 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (type != HSA_QUEUE_TYPE_COOPERATIVE) return new_queue(false, queue);
  if (hsa().cooperative == nullptr) new_queue(false, &hsa().cooperative);
  *queue = hsa().cooperative;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t intercept_create(hsa_agent_t, std::uint32_t, hsa_queue_type32_t,
                              void (*)(hsa_status_t, hsa_queue_t*, void*), void*, std::uint32_t,
                              std::uint32_t, hsa_queue_t** queue) {
  return new_queue(true, queue);
}

hsa_status_t intercept_register(hsa_queue_t* queue, hsa_amd_queue_intercept_handler handler,
                                void* data) {
  const auto found = hsa().find(queue);
  if (!found || !found->is_intercept) return HSA_STATUS_ERROR_INVALID_QUEUE;
  found->handler = handler;
  found->handler_data = data;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t queue_destroy(hsa_queue_t* queue) {
  std::shared_ptr<FakeQueue> gone;
  const std::lock_guard lock(hsa().mutex);
  const auto found = hsa().queues.find(queue);
  if (found == hsa().queues.end()) return HSA_STATUS_ERROR_INVALID_QUEUE;
  if (found->second->calls_under_way != 0) hsa().violations++;
  gone = found->second;
  hsa().queues.erase(found);
  return HSA_STATUS_SUCCESS;
}

// A change takes a while, in which the queue must stay.
template <class Change>
hsa_status_t change(const hsa_queue_t* queue, Change what) {
  const auto found = hsa().find(queue);
  if (!found) {
    hsa().violations++;
    return HSA_STATUS_ERROR_INVALID_QUEUE;
  }
  if (found->calls_under_way.fetch_add(1) != 0) hsa().violations++;
  for (int i = 0; i < 20; i++) sched_yield();
  {
    const std::lock_guard lock(hsa().mutex);
    what(*found);
  }
  found->calls_under_way.fetch_sub(1);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t set_mask(const hsa_queue_t* queue, std::uint32_t bits, const std::uint32_t* words) {
  if (bits % 32 != 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  if (hsa().mask_answer != HSA_STATUS_SUCCESS) return hsa().mask_answer;
  return change(queue, [&](FakeQueue& found) {
    found.mask.assign(words, words + bits / 32);
    found.mask_changes++;
    bool any = bits == 0;
    for (const auto word : found.mask) any = any || word != 0;
    if (!any) hsa().violations++;  // hangs the queue
  });
}

hsa_status_t get_mask(const hsa_queue_t* queue, std::uint32_t bits, std::uint32_t* words) {
  const auto found = hsa().find(queue);
  if (!found || bits == 0) return HSA_STATUS_ERROR_INVALID_QUEUE;
  const std::lock_guard lock(hsa().mutex);
  words[0] = hsa().base_mask & (found->mask.empty() ? ~0U : found->mask[0]);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t set_priority(hsa_queue_t* queue, hsa_amd_queue_priority_t priority) {
  return change(queue, [&](FakeQueue& found) {
    found.priority = priority;
    found.priority_changes++;
  });
}

std::uint64_t load_read_index(const hsa_queue_t* queue) {
  const auto found = hsa().find(queue);
  if (!found) hsa().violations++;
  return found ? found->taken.load() : 0;
}

std::uint64_t load_write_index(const hsa_queue_t* queue) {
  const auto found = hsa().find(queue);
  if (!found) hsa().violations++;
  return found ? found->written.load() : 0;
}

std::uint64_t add_write_index(const hsa_queue_t* queue, std::uint64_t value) {
  return hsa().find(queue)->written.fetch_add(value);
}

std::uint64_t cas_write_index(const hsa_queue_t* queue, std::uint64_t expected,
                              std::uint64_t value) {
  hsa().find(queue)->written.compare_exchange_strong(expected, value);
  return expected;
}

void store_write_index(const hsa_queue_t* queue, std::uint64_t value) {
  hsa().find(queue)->written = value;
}

hsa_status_t pool_allocate(hsa_amd_memory_pool_t, std::size_t, std::uint32_t, void** memory) {
  *memory = std::malloc(1);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t region_allocate(hsa_region_t, std::size_t, void** memory) {
  *memory = std::malloc(1);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t release(void* memory) {
  if (memory == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  std::free(memory);
  return HSA_STATUS_SUCCESS;
}

hsa_signal_value_t load_signal(hsa_signal_t) {
  return 0;
}

void fill_indices(CoreApiTable& core) {
  core.hsa_queue_load_read_index_relaxed_fn = load_read_index;
  core.hsa_queue_load_write_index_relaxed_fn = load_write_index;
  core.hsa_queue_add_write_index_relaxed_fn = add_write_index;
  core.hsa_queue_add_write_index_scacquire_fn = add_write_index;
  core.hsa_queue_add_write_index_screlease_fn = add_write_index;
  core.hsa_queue_add_write_index_scacq_screl_fn = add_write_index;
  core.hsa_queue_cas_write_index_relaxed_fn = cas_write_index;
  core.hsa_queue_cas_write_index_scacquire_fn = cas_write_index;
  core.hsa_queue_cas_write_index_screlease_fn = cas_write_index;
  core.hsa_queue_cas_write_index_scacq_screl_fn = cas_write_index;
  core.hsa_queue_store_write_index_relaxed_fn = store_write_index;
  core.hsa_queue_store_write_index_screlease_fn = store_write_index;
}

template <class Table>
void clear_entries(Table& table) {
  std::memset(static_cast<void*>(reinterpret_cast<char*>(&table) + sizeof(ApiTableVersion)), 0,
              sizeof table - sizeof(ApiTableVersion));
}

}  // namespace

FakeHsa& hsa() {
  static FakeHsa runtime;
  return runtime;
}

void FakeHsa::reset() {
  {
    const std::lock_guard lock(mutex);
    queues.clear();
    cooperative = nullptr;
  }
  violations = 0;
  mask_answer = HSA_STATUS_SUCCESS;
  base_mask = 0xFFF;
  container_ = HsaApiTableContainer();
  container_.root.core_ = &container_.core;
  container_.root.amd_ext_ = &container_.amd_ext;
  clear_entries(core());
  clear_entries(amd());
  core().hsa_init_fn = init;
  core().hsa_iterate_agents_fn = iterate_agents;
  core().hsa_agent_get_info_fn = agent_get_info;
  core().hsa_system_get_info_fn = system_get_info;
  core().hsa_signal_load_relaxed_fn = load_signal;
  core().hsa_queue_create_fn = queue_create;
  core().hsa_queue_destroy_fn = queue_destroy;
  core().hsa_memory_allocate_fn = region_allocate;
  core().hsa_memory_free_fn = release;
  fill_indices(core());
  amd().hsa_amd_memory_pool_allocate_fn = pool_allocate;
  amd().hsa_amd_memory_pool_free_fn = release;
  amd().hsa_amd_queue_cu_set_mask_fn = fake::set_mask;
  amd().hsa_amd_queue_cu_get_mask_fn = fake::get_mask;
  amd().hsa_amd_queue_set_priority_fn = set_priority;
  amd().hsa_amd_queue_intercept_create_fn = intercept_create;
  amd().hsa_amd_queue_intercept_register_fn = intercept_register;
}

hsa_queue_t* FakeHsa::make(hsa_queue_type32_t type, hsa_status_t* status) {
  hsa_queue_t* queue = nullptr;
  const hsa_status_t got =
      core().hsa_queue_create_fn(kGpu, 64, type, nullptr, nullptr, 0, 0, &queue);
  if (status != nullptr) *status = got;
  return got == HSA_STATUS_SUCCESS ? queue : nullptr;
}

hsa_status_t FakeHsa::set_mask(hsa_queue_t* queue, std::uint32_t word) {
  return amd().hsa_amd_queue_cu_set_mask_fn(queue, 32, &word);
}

std::uint32_t FakeHsa::get_mask(hsa_queue_t* queue) {
  std::uint32_t word = 0;
  amd().hsa_amd_queue_cu_get_mask_fn(queue, 32, &word);
  return word;
}

void* FakeHsa::allocate(std::size_t bytes, hsa_status_t* status) {
  void* memory = nullptr;
  const hsa_status_t got = amd().hsa_amd_memory_pool_allocate_fn({}, bytes, 0, &memory);
  if (status != nullptr) *status = got;
  return memory;
}

std::vector<std::uint32_t> FakeHsa::mask_of(const hsa_queue_t* queue) {
  const auto found = find(queue);
  const std::lock_guard lock(mutex);
  return found ? found->mask : std::vector<std::uint32_t>{};
}

hsa_amd_queue_priority_t FakeHsa::priority_of(const hsa_queue_t* queue) {
  const auto found = find(queue);
  const std::lock_guard lock(mutex);
  return found ? found->priority : HSA_AMD_QUEUE_PRIORITY_NORMAL;
}

unsigned FakeHsa::mask_changes_of(const hsa_queue_t* queue) {
  const auto found = find(queue);
  const std::lock_guard lock(mutex);
  return found ? found->mask_changes : 0;
}

std::shared_ptr<FakeQueue> FakeHsa::find(const hsa_queue_t* queue) {
  const std::lock_guard lock(mutex);
  const auto found = queues.find(queue);
  return found == queues.end() ? nullptr : found->second;
}

std::size_t FakeHsa::live() {
  const std::lock_guard lock(mutex);
  return queues.size();
}

}  // namespace apusched::fake
