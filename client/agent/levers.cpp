// SPDX-License-Identifier: MIT
#include "agent/levers.hpp"

#include <algorithm>

namespace apusched::agent {

using agent_abi::Applied;
using agent_abi::Priority;
using agent_abi::Setting;

namespace {

constexpr std::uint32_t kLongestBackoffSteps = 6;  // 2^6 s

Setting setting(Applied applied, hsa_status_t status = HSA_STATUS_SUCCESS) {
  return {static_cast<std::uint32_t>(applied), static_cast<std::uint32_t>(status)};
}

// "Reduced" means that HSA_CU_MASK took CUs away; the mask is in force.
bool accepted(hsa_status_t status) {
  return status == HSA_STATUS_SUCCESS ||
         static_cast<int>(status) == static_cast<int>(HSA_STATUS_CU_MASK_REDUCED);
}

hsa_status_t set_mask(const Runtime& runtime, const hsa_queue_t* queue, const CuMask& mask) {
  return runtime.set_mask(queue, mask.bits, mask.bits == 0 ? nullptr : mask.words.data());
}

hsa_amd_queue_priority_t runtime_priority(Priority priority) {
  switch (priority) {
    case Priority::low:
      return HSA_AMD_QUEUE_PRIORITY_LOW;
    case Priority::high:
      return HSA_AMD_QUEUE_PRIORITY_HIGH;
    case Priority::leave:
    case Priority::normal:
      break;
  }
  return HSA_AMD_QUEUE_PRIORITY_NORMAL;
}

Setting outcome_of(const Effective& effective) {
  if (effective.conflict) return setting(Applied::conflict);
  return setting(effective.ours ? Applied::applied : Applied::nothing);
}

void note_mask(const CuMask& ours, const Effective& effective, QueueLevers& levers) {
  levers.our_mask = ours;
  levers.mask_in_force = effective.mask;
  levers.mask_is_ours = effective.ours;
  levers.mask = outcome_of(effective);
}

// True: a call was made. Where it failed, levers.mask says so.
bool bring_mask(const CuMask& ours, const Runtime& runtime, const QueueFacts& facts,
                QueueLevers& levers) {
  const Effective wanted = effective_mask(ours, levers.program_mask, facts.base, facts.pairs);
  if (wanted.mask == levers.mask_in_force) {
    note_mask(ours, wanted, levers);
    return false;
  }
  const hsa_status_t status = set_mask(runtime, facts.handle, wanted.mask);
  if (accepted(status))
    note_mask(ours, wanted, levers);
  else
    levers.mask = setting(Applied::failed, status);
  return true;
}

Setting priority_outcome(Priority wish, const Runtime& runtime, const QueueLevers& levers) {
  if (wish == Priority::leave) return setting(Applied::nothing);
  const bool can = runtime.set_priority != nullptr && !levers.has_own_priority();
  return setting(can ? Applied::applied : Applied::unsupported);
}

bool bring_priority(Priority wish, const Runtime& runtime, const QueueFacts& facts,
                    QueueLevers& levers) {
  levers.priority = priority_outcome(wish, runtime, levers);
  if (runtime.set_priority == nullptr || levers.has_own_priority() || wish == levers.our_priority)
    return false;
  if (runtime_priority(wish) == runtime_priority(levers.our_priority)) {
    levers.our_priority = wish;
    return false;
  }
  const hsa_status_t status = runtime.set_priority(facts.handle, runtime_priority(wish));
  if (status == HSA_STATUS_SUCCESS)
    levers.our_priority = wish;
  else
    levers.priority = setting(Applied::failed, status);
  return true;
}

bool failed(const Setting& outcome) {
  return outcome.applied == static_cast<std::uint32_t>(Applied::failed);
}

bool is_there(const Settings& wish, const Runtime& runtime, const QueueFacts& facts,
              const QueueLevers& levers) {
  const Effective mask =
      effective_mask(wish.masks[facts.gpu], levers.program_mask, facts.base, facts.pairs);
  const bool priority = runtime.set_priority == nullptr || levers.has_own_priority() ||
                        runtime_priority(wish.priority) == runtime_priority(levers.our_priority);
  return mask.mask == levers.mask_in_force && priority;
}

}  // namespace

Nanoseconds bring_to(const Settings& wish, const Runtime& runtime, Nanoseconds now,
                     const QueueFacts& facts, QueueLevers& levers) noexcept {
  if (now < levers.not_before && !is_there(wish, runtime, facts, levers)) return levers.not_before;
  bool called = bring_mask(wish.masks[facts.gpu], runtime, facts, levers);
  called = bring_priority(wish.priority, runtime, facts, levers) || called;
  if (!failed(levers.mask) && !failed(levers.priority)) {
    levers.failures = 0;
    if (called) levers.not_before = now + kChangeInterval;
    return Nanoseconds{0};
  }
  levers.not_before =
      now + std::chrono::seconds{1 << std::min(levers.failures, kLongestBackoffSteps)};
  levers.failures++;
  return levers.not_before;
}

hsa_status_t set_program_mask(const Runtime& runtime, std::uint32_t bits,
                              const std::uint32_t* words, const QueueFacts& facts,
                              QueueLevers& levers) noexcept {
  const CuMask program = bits == 0 ? CuMask{} : mask_from(bits, words);
  const Effective wanted = effective_mask(levers.our_mask, program, facts.base, facts.pairs);
  const hsa_status_t status = wanted.ours ? set_mask(runtime, facts.handle, wanted.mask)
                                          : runtime.set_mask(facts.handle, bits, words);
  if (!accepted(status)) return status;
  levers.program_mask = program;
  note_mask(levers.our_mask, wanted, levers);
  return status;
}

void copy_program_mask(const QueueFacts& facts, const QueueLevers& levers, std::uint32_t bits,
                       std::uint32_t* words) noexcept {
  const CuMask view = both(facts.base, levers.program_mask);
  for (std::size_t i = 0; i < bits / 32; i++) words[i] = i < view.words.size() ? view.words[i] : 0;
}

hsa_status_t set_program_priority(const Runtime& runtime, hsa_amd_queue_priority_t priority,
                                  const QueueFacts& facts, QueueLevers& levers) noexcept {
  const bool own = priority != HSA_AMD_QUEUE_PRIORITY_NORMAL;
  const auto wanted = own ? priority : runtime_priority(levers.our_priority);
  const hsa_status_t status = runtime.set_priority(facts.handle, wanted);
  if (status != HSA_STATUS_SUCCESS) return status;
  levers.program_priority = priority;
  if (own && levers.our_priority != Priority::leave) {
    levers.our_priority = Priority::leave;
    levers.priority = setting(Applied::unsupported);
  }
  return status;
}

std::uint32_t flags_of(const QueueFacts& facts, const QueueLevers& levers) noexcept {
  std::uint32_t flags = 0;
  if (facts.left_alone) flags |= agent_abi::kQueueLeftAlone;
  if (levers.mask_is_ours) flags |= agent_abi::kQueueMasked;
  if (levers.our_priority != Priority::leave) flags |= agent_abi::kQueuePriority;
  if (levers.program_mask.bits != 0) flags |= agent_abi::kQueueOwnMask;
  if (levers.has_own_priority()) flags |= agent_abi::kQueueOwnPriority;
  return flags;
}

Setting worse(const Setting& one, const Setting& other) noexcept {
  const auto rank = [](const Setting& outcome) {
    switch (static_cast<Applied>(outcome.applied)) {
      case Applied::failed:
        return 4;
      case Applied::unsupported:
        return 3;
      case Applied::conflict:
        return 2;
      case Applied::applied:
        return 1;
      case Applied::nothing:
        break;
    }
    return 0;
  };
  return rank(other) > rank(one) ? other : one;
}

}  // namespace apusched::agent
