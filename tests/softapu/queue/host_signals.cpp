// SPDX-License-Identifier: MIT
#include "queue/host_signals.h"

#include <hsa/amd_hsa_signal.h>

#include "queue/shared_word.h"

namespace apusched::softapu {
namespace {

amd_signal_t* signal_at(std::uint64_t handle) {
  return reinterpret_cast<amd_signal_t*>(handle);  // NOLINT: that is what a handle is
}

}  // namespace

std::uint64_t gpu_ticks(Nanoseconds time) {
  return static_cast<std::uint64_t>(time.count()) / (1'000'000'000 / kGpuCounterHz);
}

std::int64_t HostSignals::load(std::uint64_t handle) const {
  return atomic_at(&signal_at(handle)->value).load(std::memory_order_acquire);
}

void HostSignals::complete(std::uint64_t handle, const RunTimes* times) {
  if (handle == 0) return;
  amd_signal_t* signal = signal_at(handle);
  if (times != nullptr) {
    signal->start_ts = gpu_ticks(times->start);
    signal->end_ts = gpu_ticks(times->end);
  }
  // Read first: once the value changes, the owner may free the signal.
  const std::uint64_t mailbox = signal->event_mailbox_ptr;
  const std::uint32_t event = signal->event_id;
  atomic_at(&signal->value).fetch_sub(1, std::memory_order_acq_rel);
  if (mailbox == 0) return;
  atomic_at(reinterpret_cast<volatile std::uint64_t*>(mailbox))  // NOLINT: as above
      .store(event, std::memory_order_release);
  events_.set(event);
}

void HostSignals::raise(std::uint64_t handle, std::int64_t value) {
  if (handle == 0) return;
  amd_signal_t* signal = signal_at(handle);
  const std::uint64_t mailbox = signal->event_mailbox_ptr;
  const std::uint32_t event = signal->event_id;
  atomic_at(&signal->value).store(value, std::memory_order_release);
  if (mailbox != 0) events_.set(event);
}

}  // namespace apusched::softapu
