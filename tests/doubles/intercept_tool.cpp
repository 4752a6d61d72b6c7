// SPDX-License-Identifier: MIT
// A tool that makes every queue an intercept queue whose handler passes packets on: what the
// runtime's own interception costs.
#include "agent/hsa_tables.hpp"

namespace {

HsaApiTable* tables = nullptr;

void pass_on(const void* packets, std::uint64_t count, std::uint64_t, void*,
             hsa_amd_queue_intercept_packet_writer writer) {
  writer(packets, count);
}

hsa_status_t make(hsa_agent_t agent, std::uint32_t size, hsa_queue_type32_t type,
                  void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data,
                  std::uint32_t private_bytes, std::uint32_t group_bytes, hsa_queue_t** queue) {
  const hsa_status_t status = tables->amd_ext_->hsa_amd_queue_intercept_create_fn(
      agent, size, type, callback, data, private_bytes, group_bytes, queue);
  if (status != HSA_STATUS_SUCCESS) return status;
  return tables->amd_ext_->hsa_amd_queue_intercept_register_fn(*queue, pass_on, nullptr);
}

}  // namespace

extern "C" {

bool OnLoad(HsaApiTable* table, std::uint64_t, std::uint64_t, const char* const*);
bool OnLoad(HsaApiTable* table, std::uint64_t, std::uint64_t, const char* const*) {
  if (table->amd_ext_->version.minor_id != sizeof(AmdExtTable)) return false;
  tables = table;
  table->core_->hsa_queue_create_fn = make;
  return true;
}

void OnUnload();
void OnUnload() {}

}  // extern "C"
