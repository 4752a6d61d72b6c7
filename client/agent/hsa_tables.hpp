// SPDX-License-Identifier: MIT
#pragma once

/// Everything that differs between versions of ROCr is in hsa_tables.hpp and hsa_tables.cpp.
///
/// The header asks for "inc/hsa_ext_amd.h" otherwise, a path of ROCr's own source tree.
#ifndef AMD_INTERNAL_BUILD
#define AMD_INTERNAL_BUILD
#endif
#include <hsa/hsa_api_trace.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "agent/abi.hpp"

namespace apusched::agent {

inline constexpr std::size_t kAtomicOrders = 4;  ///< relaxed, acquire, release, both

/// The runtime's functions that the agent calls, as they were in the table before the agent changed
/// it (those of another tool, where one was there first). Null: not to be had with this runtime.
struct Runtime {
  decltype(hsa_iterate_agents)* iterate_agents;
  decltype(hsa_agent_get_info)* agent_get_info;
  decltype(hsa_system_get_info)* system_get_info;
  decltype(hsa_queue_load_read_index_relaxed)* load_read_index;
  decltype(hsa_queue_load_write_index_relaxed)* load_write_index;
  decltype(hsa_queue_create)* queue_create;
  decltype(hsa_queue_destroy)* queue_destroy;
  decltype(hsa_memory_allocate)* memory_allocate;
  decltype(hsa_memory_free)* memory_free;
  std::array<decltype(hsa_queue_add_write_index_relaxed)*, kAtomicOrders> add_write_index;
  std::array<decltype(hsa_queue_cas_write_index_relaxed)*, kAtomicOrders> cas_write_index;
  decltype(hsa_queue_store_write_index_relaxed)* store_write_index_relaxed;
  decltype(hsa_queue_store_write_index_screlease)* store_write_index_release;
  decltype(hsa_amd_memory_pool_allocate)* pool_allocate;
  decltype(hsa_amd_memory_pool_free)* pool_free;
  decltype(hsa_amd_queue_cu_set_mask)* set_mask;
  decltype(hsa_amd_queue_cu_get_mask)* get_mask;
  decltype(hsa_amd_queue_set_priority)* set_priority;
  decltype(hsa_amd_queue_intercept_create)* intercept_create;
  decltype(hsa_amd_queue_intercept_register)* intercept_register;
};

/// The tables of one OnLoad, checked. Points into the runtime's memory.
struct Tables {
  CoreApiTable* core = nullptr;
  AmdExtTable* amd = nullptr;
  /// The AMD table is the one of the header that this was built with. Only then may entries behind
  /// hsa_amd_memory_pool_free be touched: they moved between versions without a change of major_id.
  bool amd_as_built = false;
  std::uint32_t core_bytes = 0, amd_bytes = 0;
};

/// False: not a table that this code knows; nothing may be touched.
[[nodiscard]] bool open_tables(const HsaApiTable* given, Tables* tables) noexcept;

/// What is in the tables, and what the library that made them exports.
[[nodiscard]] Runtime runtime_of(const Tables& tables) noexcept;

/// agent_abi::Feature bits.
[[nodiscard]] std::uint32_t features_of(const Runtime& runtime) noexcept;

/// Another copy of this library (found under another path) has changed these tables already.
[[nodiscard]] bool hooked_by_another_copy(const Tables& tables) noexcept;

struct Gpu {
  hsa_agent_t agent;
  agent_abi::HelloGpu facts;
  bool pairs;  ///< CUs are enabled in even-aligned pairs (WGPs, from gfx10 on)
};

struct Gpus {
  std::array<Gpu, agent_abi::kMaxGpus> list{};
  std::size_t count = 0;

  /// kMaxGpus: not among them.
  [[nodiscard]] std::size_t index_of(hsa_agent_t agent) const noexcept;
};

[[nodiscard]] Gpus find_gpus(const Runtime& runtime) noexcept;

/// HSA_SYSTEM_INFO_VERSION as major << 32 | minor.
[[nodiscard]] std::uint64_t runtime_version(const Runtime& runtime) noexcept;

}  // namespace apusched::agent
