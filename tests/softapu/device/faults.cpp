// SPDX-License-Identifier: MIT
// The faults of a device, as far as the model of its kernels goes.
#include "device/faults.h"

#include <algorithm>

#include "device/model.h"

namespace apusched::softapu {

bool DeviceModel::halted(std::uint32_t queue) const {
  const FaultState& faults = s_.faults;
  if (!faults.may_halt()) return false;
  if (faults.has(Fault::hang) || faults.has(Fault::resetting) || faults.has(Fault::gone))
    return true;
  const std::uint32_t pid = s_.clients[s_.queues[queue].client].pid;
  return std::ranges::any_of(faults.stopped, [&](const StoppedQueue& stopped) {
    return stopped.pid != 0 && stopped.pid == pid && stopped.id == s_.queues[queue].id;
  });
}

bool DeviceModel::halted(QueueIndex queue) const {
  return halted(static_cast<std::uint32_t>(queue));
}

void DeviceModel::set_fault(Fault fault, bool on, Nanoseconds now) {
  advance(now);
  FaultState& faults = s_.faults;
  if (on)
    faults.active |= FaultState::bit(fault);
  else
    faults.active &= ~FaultState::bit(fault);
  if (!on && fault == Fault::stopped_queue) faults.stopped = {};
  if (!on && fault == Fault::vanished_file) faults.vanished = {};
  faults.changed++;
  rerate();
}

bool DeviceModel::stop_queue(std::uint32_t pid, std::uint32_t id, Nanoseconds now) {
  const auto free =
      std::ranges::find_if(s_.faults.stopped, [](const auto& entry) { return entry.pid == 0; });
  if (free == s_.faults.stopped.end()) return false;
  *free = {pid, id};
  set_fault(Fault::stopped_queue, true, now);
  return true;
}

void DeviceModel::lose_clients(Nanoseconds now) {
  advance(now);
  while (s_.live_count > 0) free_live(0);
  s_.faults.losses++;
  s_.faults.changed++;
}

bool DeviceModel::lost(ClientIndex client) const {
  return s_.clients[static_cast<std::uint32_t>(client)].losses != s_.faults.losses.load();
}

}  // namespace apusched::softapu
