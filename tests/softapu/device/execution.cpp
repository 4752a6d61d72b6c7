// SPDX-License-Identifier: MIT
// Which kernel gets how much of which compute unit. The rules, with their sources: ../FIDELITY.md.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "device/model.h"

namespace apusched::softapu {
namespace {

double weight(const QueueState& queue) {
  return std::exp2(queue.priority);
}

}  // namespace

// Until its last share is done, at the present rates; infinite while one cannot be.
double DeviceModel::time_left(const Run& run) {
  double longest = 0;
  for (const EngineShare& share : run.shares)
    if (share.left > 0)
      longest = std::max(longest, share.rate > 0 ? share.left / share.rate
                                                 : std::numeric_limits<double>::infinity());
  return longest;
}

std::uint32_t DeviceModel::engines() const {
  return s_.description.xccs * s_.description.shader_engines;
}

// One bit for each engine that has a unit in the mask.
std::uint32_t DeviceModel::engines_of(const CuMask& mask) const {
  std::uint32_t engines = 0;
  for (std::size_t cu = 0; cu < s_.description.compute_units; cu++)
    if (mask.test(cu)) engines |= 1U << s_.description.engine_of_cu[cu];
  return engines;
}

double DeviceModel::units_in(const CuMask& mask, std::size_t engine) const {
  double units = 0;
  for (std::size_t cu = 0; cu < s_.description.compute_units; cu++)
    if (s_.description.engine_of_cu[cu] == engine && mask.test(cu)) units++;
  return units;
}

// Evenly over the engines, however many units each has enabled: that is why an uneven mask slows a
// kernel. Rules in ../FIDELITY.md.
void DeviceModel::deal(Run& run, const KernelCost& cost) const {
  std::uint32_t to = engines_of(s_.queues[run.queue].mask);
  if (to == 0) to = (1U << engines()) - 1;  // waits there for units
  const auto count = static_cast<std::uint64_t>(std::popcount(to));
  std::uint64_t extra = cost.workgroups % count;
  for (std::uint32_t e = 0; e < engines(); e++) {
    run.shares[e] = {};
    if ((to >> e & 1U) == 0) continue;
    const auto groups = static_cast<double>(cost.workgroups / count + (extra > 0 ? 1 : 0));
    if (extra > 0) extra--;
    run.shares[e] = {groups * cost.ns_per_workgroup, 0, groups};
  }
}

// After a change of mask: what lies at an engine without units goes evenly to those with.
void DeviceModel::deal_anew(Run& run) const {
  const std::uint32_t to = engines_of(s_.queues[run.queue].mask);
  if (to == 0) return;
  double left = 0;
  double groups = 0;
  for (std::uint32_t e = 0; e < engines(); e++) {
    if ((to >> e & 1U) != 0 || run.shares[e].left <= 0) continue;
    left += run.shares[e].left;
    groups += run.shares[e].max_cus;
    run.shares[e] = {};
  }
  if (left <= 0) return;
  const auto count = static_cast<double>(std::popcount(to));
  for (std::uint32_t e = 0; e < engines(); e++) {
    if ((to >> e & 1U) == 0) continue;
    run.shares[e].left = std::max(0.0, run.shares[e].left) + left / count;
    run.shares[e].max_cus += std::max(1.0, groups / count);
  }
}

// One bit for each engine on whose units its waiting workgroups take every slot that becomes free.
std::uint32_t DeviceModel::engines_filled_by(const Run& run) const {
  if (run.phase != RunPhase::executing || run.group_ns <= 0 ||
      s_.description.wave_slots_per_cu == 0)
    return 0;
  std::uint32_t filled = 0;
  for (std::uint32_t e = 0; e < engines(); e++) {
    const double waves = run.shares[e].left / run.group_ns * run.waves_per_group;
    const double slots = units_in(s_.queues[run.queue].mask, e) * s_.description.wave_slots_per_cu;
    if (slots > 0 && waves >= slots) filled |= 1U << e;
  }
  return filled;
}

// Waves are not preempted: where earlier kernels fill a unit, one of their workgroups must end
// before this kernel gets any of it. 0: at once.
std::int64_t DeviceModel::room_at(std::size_t cu, const Run& run) const {
  const std::size_t engine = s_.description.engine_of_cu[cu];
  const double clock = static_cast<double>(sclk_mhz()) / s_.description.reference_sclk_mhz;
  std::int64_t room = 0;
  for (std::uint32_t i = 0; i < s_.live_count; i++) {
    const Run& other = s_.runs[s_.live[i]];
    const CuMask& mask = s_.queues[other.queue].mask;
    if ((other.filled >> engine & 1U) == 0 || other.start_ns >= run.start_ns || !mask.test(cu) ||
        mapped_at(s_.queues[other.queue]) != 0)
      continue;
    room = std::max(room, run.start_ns + static_cast<std::int64_t>(other.group_ns / clock));
  }
  return room;
}

// 0: the queue is mapped. Else when it will be, or at least when to look again.
std::int64_t DeviceModel::mapped_at(const QueueState& queue) const {
  if (queue.unmapped_until_ns > s_.now_ns) return queue.unmapped_until_ns;
  if (std::popcount(s_.busy_lists) < 2) return 0;
  const std::uint64_t mine = std::uint64_t{1} << list_of(queue);
  const std::int64_t turn = s_.now_ns / quantum_ns() % std::popcount(s_.busy_lists);
  return turn == std::popcount(s_.busy_lists & (mine - 1)) ? 0 : next_turn();
}

std::int64_t DeviceModel::quantum_ns() const {
  return std::int64_t{std::max(1U, s_.description.queue_quantum_us)} * 1000;
}

std::uint32_t DeviceModel::list_of(const QueueState& queue) const {
  const std::uint32_t slots = s_.description.num_cp_queues;
  return slots == 0 ? 0 : std::min(queue.rank / slots, 63U);
}

// With more queues than slots, the runlist is a chain of lists; those with work take turns.
void DeviceModel::find_busy_lists() {
  s_.busy_lists = 0;
  for (std::uint32_t i = 0; i < s_.live_count; i++) {
    const Run& run = s_.runs[s_.live[i]];
    if (run.phase == RunPhase::executing)
      s_.busy_lists |= std::uint64_t{1} << list_of(s_.queues[run.queue]);
  }
}

// When other queues are mapped.
std::int64_t DeviceModel::next_turn() const {
  if (std::popcount(s_.busy_lists) < 2) return std::numeric_limits<std::int64_t>::max();
  return (s_.now_ns / quantum_ns() + 1) * quantum_ns();
}

void DeviceModel::rank_queues() {
  s_.queue_count = 0;
  for (QueueState& queue : s_.queues) {
    if (queue.used == 0) continue;
    s_.queue_count++;
    queue.rank = static_cast<std::uint32_t>(std::count_if(
        s_.queues.begin(), s_.queues.end(),
        [&](const QueueState& other) { return other.used != 0 && other.serial < queue.serial; }));
  }
}

// HWS knows only the runlist of all processes; MES takes one queue out (kfd_device_queue_manager.c,
// update_queue).
void DeviceModel::unmap_for_change(std::uint32_t changed) {
  const std::int64_t until = s_.now_ns + std::int64_t{s_.description.remap_us} * 1000;
  for (std::uint32_t q = 0; q < kMaxQueues; q++)
    if (s_.queues[q].used != 0 && (q == changed || s_.description.mes == 0))
      s_.queues[q].unmapped_until_ns = until;
}

// Adds the unit's share of each kernel to the kernel's rate. With MES, priorities count only
// between queues of one process; processes share evenly (add_queue_mes: the global priority of a
// gang is always normal).
void DeviceModel::share_unit(std::size_t cu) {
  const std::size_t engine = s_.description.engine_of_cu[cu];
  std::array<std::uint32_t, kMaxRuns> sharing;
  std::array<double, kMaxClients> sum{};
  std::size_t count = 0;
  std::size_t groups = 0;
  for (std::uint32_t i = 0; i < s_.live_count; i++) {
    Run& run = s_.runs[s_.live[i]];
    const QueueState& queue = s_.queues[run.queue];
    if (run.phase != RunPhase::executing || run.shares[engine].left <= 0 || !queue.mask.test(cu))
      continue;
    if (const auto room = std::max(room_at(cu, run), mapped_at(queue)); room > s_.now_ns) {
      run.room_ns = run.room_ns == 0 ? room : std::min(run.room_ns, room);
      continue;
    }
    sharing[count++] = s_.live[i];
    double& of_group = sum[sharing_group(queue)];
    if (of_group == 0) groups++;
    of_group += weight(queue);
  }
  for (std::size_t i = 0; i < count; i++) {
    Run& run = s_.runs[sharing[i]];
    const QueueState& queue = s_.queues[run.queue];
    run.shares[engine].rate +=
        weight(queue) / sum[sharing_group(queue)] / static_cast<double>(groups);
  }
}

std::size_t DeviceModel::sharing_group(const QueueState& queue) const {
  return s_.description.mes == 0 ? 0 : queue.client;
}

void DeviceModel::rerate() {
  find_busy_lists();
  std::array<double, kMaxRuns> before;
  for (std::uint32_t i = 0; i < s_.live_count; i++) {
    Run& run = s_.runs[s_.live[i]];
    before[i] = time_left(run);
    run.room_ns = 0;
    run.filled = engines_filled_by(run);
    for (EngineShare& share : run.shares) share.rate = 0;
  }
  for (std::size_t cu = 0; cu < s_.description.compute_units; cu++) share_unit(cu);
  const double clock = static_cast<double>(sclk_mhz()) / s_.description.reference_sclk_mhz;
  std::array<bool, kMaxClients> earlier{};
  for (std::uint32_t i = 0; i < s_.live_count; i++) {
    Run& run = s_.runs[s_.live[i]];
    for (EngineShare& share : run.shares) share.rate = std::min(share.rate, share.max_cus) * clock;
    // Whether there is room or not: the packet processor takes the time when it takes the packet.
    if (run.begin_ns == 0 && run.phase == RunPhase::executing &&
        mapped_at(s_.queues[run.queue]) == 0)
      run.begin_ns = std::max(s_.now_ns, run.start_ns);
    if (time_left(run) < before[i]) earlier[s_.queues[run.queue].client] = true;
  }
  for (std::uint32_t c = 0; c < kMaxClients; c++)
    if (earlier[c]) observer_.runs_end_earlier(ClientIndex{c});
}

}  // namespace apusched::softapu
