// SPDX-License-Identifier: MIT
#pragma once

#include "agent/queue_registry.hpp"

/// CU mask and priority of one queue that is held.
namespace apusched::agent {

/// A change makes the kernel unmap and map queues: at most one per queue in this time.
inline constexpr Nanoseconds kChangeInterval = std::chrono::milliseconds{100};

/// Brings the queue to what is wished, if it is not there and its time has come. Returns when to
/// come again, 0: not before the wish changes. After a failure (a GPU reset, a debugger) it tries
/// again after one second, then two, and so on up to a minute.
[[nodiscard]] Nanoseconds bring_to(const Settings& wish, const Runtime& runtime, Nanoseconds now,
                                   const QueueFacts& facts, QueueLevers& levers) noexcept;

/// hsa_amd_queue_cu_set_mask of the program, arguments as it gave them, `bits` a multiple of 32.
[[nodiscard]] hsa_status_t set_program_mask(const Runtime& runtime, std::uint32_t bits,
                                            const std::uint32_t* words, const QueueFacts& facts,
                                            QueueLevers& levers) noexcept;

/// What the program reads back: its own mask as if there were no agent.
void copy_program_mask(const QueueFacts& facts, const QueueLevers& levers, std::uint32_t bits,
                       std::uint32_t* words) noexcept;

/// hsa_amd_queue_set_priority of the program.
[[nodiscard]] hsa_status_t set_program_priority(const Runtime& runtime,
                                                hsa_amd_queue_priority_t priority,
                                                const QueueFacts& facts,
                                                QueueLevers& levers) noexcept;

/// agent_abi::QueueFlag bits, but for those that `facts` alone decide.
[[nodiscard]] std::uint32_t flags_of(const QueueFacts& facts, const QueueLevers& levers) noexcept;

/// The one of two that says more about what went wrong.
[[nodiscard]] agent_abi::Setting worse(const agent_abi::Setting& one,
                                       const agent_abi::Setting& other) noexcept;

}  // namespace apusched::agent
