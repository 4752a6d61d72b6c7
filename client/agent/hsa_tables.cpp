// SPDX-License-Identifier: MIT
#include "agent/hsa_tables.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace apusched::agent {
namespace {

constexpr const char* kRuntimeName = "libhsa-runtime64.so.1";
constexpr std::uint32_t kLargestTable = 1U << 16;

// The entries that are replaced or called without asking for the table's exact size: the same from
// ROCr 5.2.3 to 7 (compared tag by tag).
static_assert(offsetof(CoreApiTable, hsa_iterate_agents_fn) == 56);
static_assert(offsetof(CoreApiTable, hsa_queue_create_fn) == 72);
static_assert(offsetof(CoreApiTable, hsa_queue_destroy_fn) == 88);
static_assert(offsetof(CoreApiTable, hsa_queue_load_read_index_relaxed_fn) == 112);
static_assert(offsetof(CoreApiTable, hsa_queue_cas_write_index_scacq_screl_fn) == 152);
static_assert(offsetof(CoreApiTable, hsa_queue_add_write_index_scacq_screl_fn) == 184);
static_assert(offsetof(CoreApiTable, hsa_memory_allocate_fn) == 280);
static_assert(offsetof(CoreApiTable, hsa_memory_free_fn) == 288);
static_assert(offsetof(AmdExtTable, hsa_amd_queue_cu_set_mask_fn) == 96);
static_assert(offsetof(AmdExtTable, hsa_amd_memory_pool_allocate_fn) == 120);
static_assert(offsetof(AmdExtTable, hsa_amd_memory_pool_free_fn) == 128);
static_assert(offsetof(HsaApiTable, core_) == 16 && offsetof(HsaApiTable, amd_ext_) == 24);

constexpr std::uint32_t kRootBytes = 32;
constexpr std::uint32_t kCoreBytes = 296;
constexpr std::uint32_t kAmdBytes = 136;

// minor_id of every table is its size in bytes.
bool holds(const ApiTableVersion& version, std::uint32_t bytes) {
  return version.major_id != 0 && version.minor_id >= bytes && version.minor_id < kLargestTable;
}

bool complete(const Runtime& runtime) {
  for (auto* entry : runtime.add_write_index)
    if (entry == nullptr) return false;
  for (auto* entry : runtime.cas_write_index)
    if (entry == nullptr) return false;
  return runtime.iterate_agents != nullptr && runtime.agent_get_info != nullptr &&
         runtime.system_get_info != nullptr && runtime.load_read_index != nullptr &&
         runtime.load_write_index != nullptr && runtime.queue_create != nullptr &&
         runtime.queue_destroy != nullptr && runtime.memory_allocate != nullptr &&
         runtime.memory_free != nullptr && runtime.store_write_index_relaxed != nullptr &&
         runtime.store_write_index_release != nullptr && runtime.pool_allocate != nullptr &&
         runtime.pool_free != nullptr && runtime.set_mask != nullptr;
}

Runtime unmoved_entries(const Tables& tables) {
  const CoreApiTable& core = *tables.core;
  const AmdExtTable& amd = *tables.amd;
  Runtime runtime{};
  runtime.iterate_agents = core.hsa_iterate_agents_fn;
  runtime.agent_get_info = core.hsa_agent_get_info_fn;
  runtime.system_get_info = core.hsa_system_get_info_fn;
  runtime.load_read_index = core.hsa_queue_load_read_index_relaxed_fn;
  runtime.load_write_index = core.hsa_queue_load_write_index_relaxed_fn;
  runtime.queue_create = core.hsa_queue_create_fn;
  runtime.queue_destroy = core.hsa_queue_destroy_fn;
  runtime.memory_allocate = core.hsa_memory_allocate_fn;
  runtime.memory_free = core.hsa_memory_free_fn;
  runtime.add_write_index = {
      core.hsa_queue_add_write_index_relaxed_fn, core.hsa_queue_add_write_index_scacquire_fn,
      core.hsa_queue_add_write_index_screlease_fn, core.hsa_queue_add_write_index_scacq_screl_fn};
  runtime.cas_write_index = {
      core.hsa_queue_cas_write_index_relaxed_fn, core.hsa_queue_cas_write_index_scacquire_fn,
      core.hsa_queue_cas_write_index_screlease_fn, core.hsa_queue_cas_write_index_scacq_screl_fn};
  runtime.store_write_index_relaxed = core.hsa_queue_store_write_index_relaxed_fn;
  runtime.store_write_index_release = core.hsa_queue_store_write_index_screlease_fn;
  runtime.pool_allocate = amd.hsa_amd_memory_pool_allocate_fn;
  runtime.pool_free = amd.hsa_amd_memory_pool_free_fn;
  runtime.set_mask = amd.hsa_amd_queue_cu_set_mask_fn;
  return runtime;
}

template <class Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

// The library that a table's entry lies in. Not RTLD_DEFAULT: a program may have loaded the runtime
// with RTLD_LOCAL, as PyTorch's wheels do, and another version may be there as well.
void* library_of(void* entry) {
  Dl_info info{};
  if (dladdr(entry, &info) != 0 && info.dli_fname != nullptr) {
    void* library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (library != nullptr) return library;
  }
  return dlopen(kRuntimeName, RTLD_LAZY | RTLD_NOLOAD);
}

// hsa_amd_queue_intercept_* is exported by no version: there is the table or nothing.
void add_exported(const Tables& tables, Runtime* runtime) {
  void* library = library_of(address(tables.core->hsa_init_fn));
  if (library == nullptr) return;
  runtime->get_mask =
      reinterpret_cast<decltype(runtime->get_mask)>(dlsym(library, "hsa_amd_queue_cu_get_mask"));
  runtime->set_priority = reinterpret_cast<decltype(runtime->set_priority)>(
      dlsym(library, "hsa_amd_queue_set_priority"));
  dlclose(library);
}

// Where another tool makes the queues, making them past it would hide them from it.
bool queues_are_made_by_runtime(const Tables& tables) {
  Dl_info create{};
  Dl_info signal{};
  return dladdr(address(tables.core->hsa_queue_create_fn), &create) != 0 &&
         dladdr(address(tables.core->hsa_signal_load_relaxed_fn), &signal) != 0 &&
         create.dli_fbase == signal.dli_fbase;
}

struct Search {
  const Runtime* runtime;
  Gpus* found;
};

template <class Value>
bool ask(const Runtime& runtime, hsa_agent_t agent, unsigned attribute, Value* value) {
  // AMD's attributes lie outside of the enumeration; the parameter is an int on every ABI of ROCr.
  return runtime.agent_get_info(agent, static_cast<hsa_agent_info_t>(attribute), value) ==
         HSA_STATUS_SUCCESS;
}

hsa_status_t note_gpu(hsa_agent_t agent, void* data) {
  auto& [runtime, found] = *static_cast<Search*>(data);
  hsa_device_type_t type{};
  if (!ask(*runtime, agent, HSA_AGENT_INFO_DEVICE, &type) || type != HSA_DEVICE_TYPE_GPU)
    return HSA_STATUS_SUCCESS;
  if (found->count == found->list.size()) return HSA_STATUS_INFO_BREAK;
  char name[64] = {};
  Gpu gpu{};
  gpu.agent = agent;
  if (!ask(*runtime, agent, HSA_AGENT_INFO_NAME, name) ||
      !ask(*runtime, agent, HSA_AMD_AGENT_INFO_BDFID, &gpu.facts.pci_bdf) ||
      !ask(*runtime, agent, HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, &gpu.facts.compute_units))
    return HSA_STATUS_SUCCESS;
  // Unknown before ROCr 4.5: one domain then.
  if (!ask(*runtime, agent, HSA_AMD_AGENT_INFO_DOMAIN, &gpu.facts.pci_domain))
    gpu.facts.pci_domain = 0;
  std::memcpy(gpu.facts.isa, name, sizeof gpu.facts.isa - 1);
  // gfx90c is 9.0.12, gfx1035 10.3.5: minor and stepping are one (hexadecimal) digit each.
  const std::size_t length = std::strlen(name);
  gpu.pairs = std::strncmp(name, "gfx", 3) == 0 && length > 6;
  found->list[found->count++] = gpu;
  return HSA_STATUS_SUCCESS;
}

}  // namespace

bool open_tables(const HsaApiTable* given, Tables* tables) noexcept {
  if (given == nullptr || !holds(given->version, kRootBytes) || given->core_ == nullptr ||
      given->amd_ext_ == nullptr)
    return false;
  if (!holds(given->core_->version, kCoreBytes) || !holds(given->amd_ext_->version, kAmdBytes))
    return false;
  *tables = {.core = given->core_,
             .amd = given->amd_ext_,
             .amd_as_built = given->amd_ext_->version.minor_id == sizeof(AmdExtTable),
             .core_bytes = given->core_->version.minor_id,
             .amd_bytes = given->amd_ext_->version.minor_id};
  return complete(unmoved_entries(*tables));
}

Runtime runtime_of(const Tables& tables) noexcept {
  Runtime runtime = unmoved_entries(tables);
  if (!tables.amd_as_built) {
    add_exported(tables, &runtime);
    return runtime;
  }
  runtime.get_mask = tables.amd->hsa_amd_queue_cu_get_mask_fn;
  runtime.set_priority = tables.amd->hsa_amd_queue_set_priority_fn;
  if (queues_are_made_by_runtime(tables)) {
    runtime.intercept_create = tables.amd->hsa_amd_queue_intercept_create_fn;
    runtime.intercept_register = tables.amd->hsa_amd_queue_intercept_register_fn;
  }
  return runtime;
}

std::uint32_t features_of(const Runtime& runtime) noexcept {
  std::uint32_t features = agent_abi::kFeatureMask | agent_abi::kFeatureQueueLimit |
                           agent_abi::kFeatureMemoryLimit | agent_abi::kFeatureGate;
  if (runtime.set_priority != nullptr) features |= agent_abi::kFeaturePriority;
  if (runtime.intercept_create != nullptr && runtime.intercept_register != nullptr)
    features |= agent_abi::kFeatureSerial;
  return features;
}

bool hooked_by_another_copy(const Tables& tables) noexcept {
  Dl_info info{};
  if (dladdr(address(tables.core->hsa_queue_create_fn), &info) == 0 || info.dli_fname == nullptr)
    return false;
  const std::string_view path = info.dli_fname;
  return path.substr(path.rfind('/') + 1) == "libapusched-agent.so";
}

std::size_t Gpus::index_of(hsa_agent_t agent) const noexcept {
  for (std::size_t i = 0; i < count; i++)
    if (list[i].agent.handle == agent.handle) return i;
  return agent_abi::kMaxGpus;
}

Gpus find_gpus(const Runtime& runtime) noexcept {
  Gpus found;
  Search search{&runtime, &found};
  runtime.iterate_agents(note_gpu, &search);
  return found;
}

std::uint64_t runtime_version(const Runtime& runtime) noexcept {
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
  runtime.system_get_info(HSA_SYSTEM_INFO_VERSION_MAJOR, &major);
  runtime.system_get_info(HSA_SYSTEM_INFO_VERSION_MINOR, &minor);
  return std::uint64_t{major} << 32 | minor;
}

}  // namespace apusched::agent
