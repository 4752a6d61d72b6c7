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
    if ((other.filled >> engine & 1U) == 0 || other.start_ns >= run.start_ns || !mask.test(cu))
      continue;
    room = std::max(room, run.start_ns + static_cast<std::int64_t>(other.group_ns / clock));
  }
  return room;
}

// Adds the unit's share of each kernel to the kernel's rate.
void DeviceModel::share_unit(std::size_t cu) {
  const std::size_t engine = s_.description.engine_of_cu[cu];
  std::array<std::uint32_t, kMaxRuns> sharing;
  std::size_t count = 0;
  double sum = 0;
  for (std::uint32_t i = 0; i < s_.live_count; i++) {
    Run& run = s_.runs[s_.live[i]];
    const QueueState& queue = s_.queues[run.queue];
    if (run.phase != RunPhase::executing || run.shares[engine].left <= 0 || !queue.mask.test(cu) ||
        halted(run.queue))
      continue;
    if (const auto room = room_at(cu, run); room > s_.now_ns) {
      run.room_ns = run.room_ns == 0 ? room : std::min(run.room_ns, room);
      continue;
    }
    sharing[count++] = s_.live[i];
    sum += weight(queue);
  }
  for (std::size_t i = 0; i < count; i++) {
    Run& run = s_.runs[sharing[i]];
    run.shares[engine].rate += weight(s_.queues[run.queue]) / sum;
  }
}

void DeviceModel::rerate() {
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
    if (time_left(run) < before[i]) earlier[s_.queues[run.queue].client] = true;
  }
  for (std::uint32_t c = 0; c < kMaxClients; c++)
    if (earlier[c]) observer_.runs_end_earlier(ClientIndex{c});
}

}  // namespace apusched::softapu
