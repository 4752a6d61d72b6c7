// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>

#include "agent/hsa_tables.hpp"

namespace apusched::agent {

/// Handler of an intercept queue: sets the barrier bit of kernel dispatches and barrier packets, so
/// that each waits for those before it. `data` is a std::atomic<bool>; while it is false, packets
/// pass unchanged. Runs on the submitting thread, inside its doorbell.
void serialize(const void* packets, std::uint64_t count, std::uint64_t first_index, void* data,
               hsa_amd_queue_intercept_packet_writer writer);

}  // namespace apusched::agent
