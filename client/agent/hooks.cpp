// SPDX-License-Identifier: MIT
#include "agent/hooks.hpp"

#include <utility>

#include "agent/levers.hpp"
#include "agent/serial.hpp"

namespace apusched::agent {
namespace {

// Set before the first entry is; never null afterwards.
Host* the_host = nullptr;

Host& host() {
  return *the_host;
}

using QueueError = void (*)(hsa_status_t, hsa_queue_t*, void*);

struct QueueRequest {
  hsa_agent_t agent;
  std::uint32_t size;
  hsa_queue_type32_t type;
  QueueError callback;
  void* data;
  std::uint32_t private_bytes, group_bytes;
};

hsa_status_t make_plain(const QueueRequest& request, hsa_queue_t** queue) {
  return host().runtime.queue_create(request.agent, request.size, request.type, request.callback,
                                     request.data, request.private_bytes, request.group_bytes,
                                     queue);
}

// An error where it cannot be done; the caller makes a plain one then.
hsa_status_t make_serial(const QueueRequest& request, hsa_queue_t** queue) {
  const Runtime& runtime = host().runtime;
  if (runtime.intercept_create == nullptr || runtime.intercept_register == nullptr)
    return HSA_STATUS_ERROR;
  const hsa_status_t status =
      runtime.intercept_create(request.agent, request.size, request.type, request.callback,
                               request.data, request.private_bytes, request.group_bytes, queue);
  if (status != HSA_STATUS_SUCCESS) return status;
  const hsa_status_t registered = runtime.intercept_register(*queue, serialize, &host().serial);
  if (registered != HSA_STATUS_SUCCESS) runtime.queue_destroy(*queue);
  return registered;
}

// What HSA_CU_MASK left, read before anybody has set a mask: newer versions of ROCr go on to
// answer with just this.
CuMask base_mask(const hsa_queue_t* queue, std::uint32_t compute_units) {
  const CuMask all = all_of(compute_units);
  CuMask base = all;
  if (host().runtime.get_mask == nullptr ||
      host().runtime.get_mask(queue, base.bits, base.words.data()) != HSA_STATUS_SUCCESS)
    return all;
  base = both(all, base);
  return enables_none(base) ? all : base;
}

QueueFacts facts_of(hsa_agent_t agent, hsa_queue_t* queue, bool serial) {
  QueueFacts facts;
  facts.handle = queue;
  facts.id = queue->id;
  facts.serial = serial;
  facts.gpu = host().gpus.index_of(agent);
  if (facts.gpu == agent_abi::kMaxGpus) {
    facts.left_alone = true;
    return facts;
  }
  const Gpu& gpu = host().gpus.list[facts.gpu];
  facts.pairs = gpu.pairs;
  facts.base = base_mask(queue, gpu.facts.compute_units);
  return facts;
}

hsa_status_t create_cooperative(const QueueRequest& request, hsa_queue_t** queue) {
  const hsa_status_t status = make_plain(request, queue);
  if (status != HSA_STATUS_SUCCESS) return status;
  // One queue of the GPU that the runtime hands out to all who ask.
  QueueFacts facts;
  facts.handle = *queue;
  facts.id = (*queue)->id;
  facts.gpu = host().gpus.index_of(request.agent);
  facts.left_alone = true;
  host().queues.add_shared(facts);
  host().tell();
  return status;
}

hsa_status_t create(const QueueRequest& request, hsa_queue_t** queue) {
  host().attachment.wait_for_answer();
  if (request.type == HSA_QUEUE_TYPE_COOPERATIVE) return create_cooperative(request, queue);
  if (!host().queues.reserve(host().queue_limit.load(std::memory_order_relaxed))) {
    host().tell();
    return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  }
  bool serial = host().serial.load(std::memory_order_relaxed);
  serial = serial && make_serial(request, queue) == HSA_STATUS_SUCCESS;
  const hsa_status_t status = serial ? HSA_STATUS_SUCCESS : make_plain(request, queue);
  if (status != HSA_STATUS_SUCCESS) {
    host().queues.give_up();
    return status;
  }
  host().queues.add(facts_of(request.agent, *queue, serial));
  host().tell();
  return status;
}

hsa_status_t queue_create(hsa_agent_t agent, std::uint32_t size, hsa_queue_type32_t type,
                          QueueError callback, void* data, std::uint32_t private_bytes,
                          std::uint32_t group_bytes, hsa_queue_t** queue) {
  const QueueRequest request{agent, size, type, callback, data, private_bytes, group_bytes};
  if (!host().is_active() || queue == nullptr) return make_plain(request, queue);
  return create(request, queue);
}

hsa_status_t queue_destroy(hsa_queue_t* queue) {
  const Runtime& runtime = host().runtime;
  if (!host().is_active()) return runtime.queue_destroy(queue);
  const auto taken = host().queues.take(queue, runtime);
  const hsa_status_t status = runtime.queue_destroy(queue);
  if (!taken) return status;
  if (status == HSA_STATUS_SUCCESS)
    host().tell();
  else
    host().queues.put_back(*taken);
  return status;
}

hsa_status_t queue_set_mask(const hsa_queue_t* queue, std::uint32_t bits,
                            const std::uint32_t* words) {
  const Runtime& runtime = host().runtime;
  const bool is_request =
      bits % 32 == 0 && bits <= 32 * agent_abi::kMaxMaskWords && (bits == 0 || words != nullptr);
  if (!host().is_active() || !is_request) return runtime.set_mask(queue, bits, words);
  hsa_status_t status = HSA_STATUS_SUCCESS;
  const bool known = host().queues.hold(queue, [&](const QueueFacts& facts, QueueLevers& levers) {
    status = set_program_mask(runtime, bits, words, facts, levers);
  });
  if (!known) return runtime.set_mask(queue, bits, words);
  host().tell();
  return status;
}

hsa_status_t queue_get_mask(const hsa_queue_t* queue, std::uint32_t bits, std::uint32_t* words) {
  const Runtime& runtime = host().runtime;
  // The runtime's own answer where nothing of ours is in force.
  const auto found = host().is_active() ? host().queues.find(queue) : std::nullopt;
  if (!found || !found->levers.mask_is_ours || bits == 0 || bits % 32 != 0 || words == nullptr)
    return runtime.get_mask(queue, bits, words);
  copy_program_mask(found->facts, found->levers, bits, words);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t queue_set_priority(hsa_queue_t* queue, hsa_amd_queue_priority_t priority) {
  const Runtime& runtime = host().runtime;
  if (!host().is_active()) return runtime.set_priority(queue, priority);
  hsa_status_t status = HSA_STATUS_SUCCESS;
  const bool known = host().queues.hold(queue, [&](const QueueFacts& facts, QueueLevers& levers) {
    status = set_program_priority(runtime, priority, facts, levers);
  });
  if (!known) return runtime.set_priority(queue, priority);
  host().tell();
  return status;
}

template <class Allocate>
hsa_status_t allocate(std::size_t size, void** memory, Allocate allocate) {
  MemoryBook& book = host().memory;
  if (!host().is_active() || memory == nullptr || size > kLargestBooked) return allocate();
  if (!book.reserve(size)) {
    host().tell();
    return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  }
  const hsa_status_t status = allocate();
  if (status == HSA_STATUS_SUCCESS)
    book.commit(*memory, size);
  else
    book.cancel(size);
  return status;
}

template <class Free>
hsa_status_t release(void* memory, Free free) {
  if (!host().is_active()) return free();
  const std::uint64_t bytes = host().memory.forget(memory);
  const hsa_status_t status = free();
  if (status != HSA_STATUS_SUCCESS && bytes != 0) host().memory.put_back(memory, bytes);
  return status;
}

hsa_status_t pool_allocate(hsa_amd_memory_pool_t pool, std::size_t size, std::uint32_t flags,
                           void** memory) {
  return allocate(size, memory,
                  [&] { return host().runtime.pool_allocate(pool, size, flags, memory); });
}

hsa_status_t pool_free(void* memory) {
  return release(memory, [&] { return host().runtime.pool_free(memory); });
}

hsa_status_t memory_allocate(hsa_region_t region, std::size_t size, void** memory) {
  return allocate(size, memory,
                  [&] { return host().runtime.memory_allocate(region, size, memory); });
}

hsa_status_t memory_free(void* memory) {
  return release(memory, [&] { return host().runtime.memory_free(memory); });
}

template <std::size_t kOrder>
std::uint64_t add_write_index(const hsa_queue_t* queue, std::uint64_t value) {
  host().gate.pass();
  return host().runtime.add_write_index[kOrder](queue, value);
}

template <std::size_t kOrder>
std::uint64_t cas_write_index(const hsa_queue_t* queue, std::uint64_t expected,
                              std::uint64_t value) {
  host().gate.pass();
  return host().runtime.cas_write_index[kOrder](queue, expected, value);
}

void store_write_index_relaxed(const hsa_queue_t* queue, std::uint64_t value) {
  host().gate.pass();
  host().runtime.store_write_index_relaxed(queue, value);
}

void store_write_index_release(const hsa_queue_t* queue, std::uint64_t value) {
  host().gate.pass();
  host().runtime.store_write_index_release(queue, value);
}

// Calls `act(entry, original, ours)` for each entry that is replaced, in one order for both ways.
template <class Act>
void each_entry(Host& host, Act act) {
  CoreApiTable& core = *host.tables.core;
  AmdExtTable& amd = *host.tables.amd;
  const Runtime& was = host.runtime;
  act(core.hsa_queue_create_fn, was.queue_create, queue_create);
  act(core.hsa_queue_destroy_fn, was.queue_destroy, queue_destroy);
  act(core.hsa_memory_allocate_fn, was.memory_allocate, memory_allocate);
  act(core.hsa_memory_free_fn, was.memory_free, memory_free);
  act(core.hsa_queue_add_write_index_relaxed_fn, was.add_write_index[0], add_write_index<0>);
  act(core.hsa_queue_add_write_index_scacquire_fn, was.add_write_index[1], add_write_index<1>);
  act(core.hsa_queue_add_write_index_screlease_fn, was.add_write_index[2], add_write_index<2>);
  act(core.hsa_queue_add_write_index_scacq_screl_fn, was.add_write_index[3], add_write_index<3>);
  act(core.hsa_queue_cas_write_index_relaxed_fn, was.cas_write_index[0], cas_write_index<0>);
  act(core.hsa_queue_cas_write_index_scacquire_fn, was.cas_write_index[1], cas_write_index<1>);
  act(core.hsa_queue_cas_write_index_screlease_fn, was.cas_write_index[2], cas_write_index<2>);
  act(core.hsa_queue_cas_write_index_scacq_screl_fn, was.cas_write_index[3], cas_write_index<3>);
  act(core.hsa_queue_store_write_index_relaxed_fn, was.store_write_index_relaxed,
      store_write_index_relaxed);
  act(core.hsa_queue_store_write_index_screlease_fn, was.store_write_index_release,
      store_write_index_release);
  act(amd.hsa_amd_memory_pool_allocate_fn, was.pool_allocate, pool_allocate);
  act(amd.hsa_amd_memory_pool_free_fn, was.pool_free, pool_free);
  act(amd.hsa_amd_queue_cu_set_mask_fn, was.set_mask, queue_set_mask);
  if (!host.tables.amd_as_built) return;
  if (was.get_mask != nullptr) act(amd.hsa_amd_queue_cu_get_mask_fn, was.get_mask, queue_get_mask);
  if (was.set_priority != nullptr)
    act(amd.hsa_amd_queue_set_priority_fn, was.set_priority, queue_set_priority);
}

}  // namespace

void install_hooks(Host& host) noexcept {
  the_host = &host;
  each_entry(host, [](auto& entry, auto original, auto ours) {
    if (entry == original) __atomic_store_n(&entry, ours, __ATOMIC_RELEASE);
  });
}

void remove_hooks() noexcept {
  if (the_host == nullptr) return;
  each_entry(*the_host, [](auto& entry, auto original, auto ours) {
    if (entry == ours) __atomic_store_n(&entry, original, __ATOMIC_RELEASE);
  });
}

}  // namespace apusched::agent
