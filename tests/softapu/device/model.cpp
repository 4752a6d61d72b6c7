// SPDX-License-Identifier: MIT
#include "device/model.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "device/power.h"

namespace apusched::softapu {
namespace {

// How often the firmware looks at load, power and heat. Assumed: its metrics table is renewed about
// as often (SMU tables are cached for 1 ms, amdgpu_smu.h).
constexpr std::int64_t kGovernorPeriodNs = 1'000'000;

constexpr std::array<std::string_view, kLevels> kLevelNames = {"auto",
                                                               "low",
                                                               "high",
                                                               "manual",
                                                               "profile_standard",
                                                               "profile_min_sclk",
                                                               "profile_min_mclk",
                                                               "profile_peak",
                                                               "profile_exit",
                                                               "perf_determinism"};

std::uint32_t index(QueueIndex queue) {
  return static_cast<std::uint32_t>(queue);
}
std::uint32_t index(ClientIndex client) {
  return static_cast<std::uint32_t>(client);
}

}  // namespace

bool is_profile(Level level) {
  return level >= Level::profile_standard && level <= Level::profile_peak;
}

std::string_view level_name(Level level) {
  return kLevelNames[static_cast<std::size_t>(level)];
}

std::optional<Level> parse_level(std::string_view text) {
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  for (std::size_t i = 0; i < kLevels; i++)
    if (text == kLevelNames[i]) return static_cast<Level>(i);
  return std::nullopt;
}

std::optional<Level> parse_level_written_over(std::string_view text, Level before) {
  if (const auto whole = parse_level(text)) return whole;
  const std::string old = std::string(level_name(before)) + "\n";
  if (text.size() != old.size()) return std::nullopt;
  for (std::size_t i = 0; i < kLevels; i++)
    for (const char* end : {"", "\n"}) {
      const std::string word = std::string(kLevelNames[i]) + end;
      if (word.size() < old.size() && text == word + old.substr(word.size()))
        return static_cast<Level>(i);
    }
  return std::nullopt;
}

CuMask DeviceModel::all_cus() const {
  CuMask mask;
  for (std::size_t cu = 0; cu < s_.description.compute_units; cu++) mask.set(cu);
  return mask;
}

std::uint32_t DeviceModel::sclk_mhz() const {
  return s_.sclk_mhz;
}
std::uint32_t DeviceModel::mclk_mhz() const {
  return s_.description.mclk.mhz[s_.mclk_index];
}

bool DeviceModel::anything_running() const {
  return std::any_of(s_.live.begin(), s_.live.begin() + s_.live_count,
                     [&](std::uint32_t i) { return s_.runs[i].phase != RunPhase::ended; });
}

std::int64_t DeviceModel::next_event(std::int64_t limit) const {
  std::int64_t next = std::min(limit, std::max(s_.governor_ns, s_.now_ns + 1));
  next = std::min(next, next_turn());
  for (std::uint32_t i = 0; i < s_.live_count; i++) {
    const Run& run = s_.runs[s_.live[i]];
    if (run.phase == RunPhase::launching) next = std::min(next, run.start_ns);
    if (run.phase != RunPhase::executing) continue;
    if (run.room_ns > s_.now_ns) next = std::min(next, run.room_ns);
    for (const EngineShare& share : run.shares) {
      if (share.left <= 0 || share.rate <= 0) continue;
      const double ns = std::ceil(share.left / share.rate);
      if (ns < static_cast<double>(limit - s_.now_ns))
        next = std::min(next, s_.now_ns + static_cast<std::int64_t>(ns));
    }
  }
  return std::max(next, s_.now_ns);
}

void DeviceModel::pass_time(std::int64_t until) {
  const auto dt = static_cast<double>(until - s_.now_ns);
  bool executing = s_.faults.has(Fault::hang);  // what hangs reads as busy
  for (std::uint32_t i = 0; i < s_.live_count; i++) {
    Run& run = s_.runs[s_.live[i]];
    if (run.phase != RunPhase::executing) continue;
    for (EngineShare& share : run.shares) share.left -= share.rate * dt;
    executing = true;
  }
  if (executing) s_.busy_ns += until - s_.now_ns;
  const double tau = s_.description.load_time_constant_us * 1000.0;
  const double keep = tau > 0 ? std::exp(-dt / tau) : 0;
  s_.load = s_.load * keep + (executing ? 1.0 - keep : 0.0);
  const std::int64_t elapsed = until - s_.now_ns;
  s_.now_ns = until;
  settle_power(s_, elapsed, s_.live_count > 0);
}

bool DeviceModel::change_phases() {
  bool changed = false;
  for (std::uint32_t i = 0; i < s_.live_count; i++) {
    Run& run = s_.runs[s_.live[i]];
    if (run.phase == RunPhase::launching && run.start_ns <= s_.now_ns) {
      run.phase = RunPhase::executing;
      changed = true;
    }
    if (run.phase != RunPhase::executing || halted(run.queue)) continue;
    changed |= run.room_ns != 0 && run.room_ns <= s_.now_ns;
    bool done = true;
    for (EngineShare& share : run.shares) {
      // Half a nanosecond of work is rounding, not work.
      if (share.left > 0 && share.left <= 0.5 * share.rate) {
        share = {};
        changed = true;
      }
      done &= share.left <= 0;
    }
    if (done) {
      run.phase = RunPhase::ended;
      run.end_ns = s_.now_ns;
      changed = true;
    }
  }
  return changed;
}

bool DeviceModel::govern() {
  if (s_.now_ns >= s_.governor_ns) s_.governor_ns = s_.now_ns + kGovernorPeriodNs;
  return choose_clocks(s_);
}

void DeviceModel::advance(Nanoseconds now) {
  const std::int64_t target = now.count();
  while (s_.now_ns < target) {
    if (!anything_running()) {
      pass_time(target);
      if (govern()) settle_power(s_, 0, false);
      return;
    }
    const std::int64_t turn = next_turn();
    pass_time(next_event(target));
    const bool phases = change_phases() || s_.now_ns == turn;
    const bool clock = s_.now_ns >= s_.governor_ns && govern();
    if (phases || clock) rerate();
  }
}

std::optional<ClientIndex> DeviceModel::add_client(std::uint32_t pid, Nanoseconds now) {
  advance(now);
  for (std::uint32_t c = 0; c < kMaxClients; c++) {
    Client& client = s_.clients[c];
    if (client.pid != 0) continue;
    client.pid = pid;
    client.generation++;
    client.losses = s_.faults.losses.load();
    client.vram_used = client.gtt_used = 0;
    client.sleeping = 0;
    client.wakeups = 0;
    client.doorbell_faults = 0;
    s_.clients_seen++;
    return ClientIndex{c};
  }
  return std::nullopt;
}

void DeviceModel::free_live(std::uint32_t position) {
  s_.runs[s_.live[position]] = Run{};
  s_.live[position] = s_.live[--s_.live_count];
}

void DeviceModel::drop_runs_of(std::uint32_t queue) {
  for (std::uint32_t i = 0; i < s_.live_count;)
    if (s_.runs[s_.live[i]].queue == queue)
      free_live(i);
    else
      i++;
}

void DeviceModel::remove_client(ClientIndex client, Nanoseconds now) {
  advance(now);
  for (std::uint32_t q = 0; q < kMaxQueues; q++)
    if (s_.queues[q].used != 0 && s_.queues[q].client == index(client)) {
      drop_runs_of(q);
      s_.queues[q].used = 0;
    }
  rank_queues();
  Client& gone = s_.clients[index(client)];
  gone.pid = 0;
  gone.vram_used = gone.gtt_used = 0;
  rerate();
}

std::optional<QueueIndex> DeviceModel::add_queue(ClientIndex client, const QueueSpec& spec,
                                                 Nanoseconds now) {
  advance(now);
  for (std::uint32_t q = 0; q < kMaxQueues; q++) {
    QueueState& queue = s_.queues[q];
    if (queue.used != 0) continue;
    queue.used = 1;
    queue.client = index(client);
    queue.id = spec.id;
    queue.ring_bytes = spec.ring_bytes;
    queue.priority = spec.priority;
    queue.percent = spec.percent;
    queue.mask = all_cus();
    queue.mask_updates = queue.priority_updates = 0;
    queue.serial = ++s_.queues_made;
    queue.unmapped_until_ns = 0;
    rank_queues();
    for (auto* counter :
         {&queue.counters.submitted, &queue.counters.launched, &queue.counters.retired,
          &queue.counters.dispatches, &queue.counters.barriers, &queue.counters.overlapped,
          &queue.counters.errors})
      counter->store(0);
    return QueueIndex{q};
  }
  return std::nullopt;
}

void DeviceModel::remove_queue(QueueIndex queue, Nanoseconds now) {
  advance(now);
  drop_runs_of(index(queue));
  s_.queues[index(queue)].used = 0;
  rank_queues();
  rerate();
}

void DeviceModel::set_mask(QueueIndex queue, const CuMask& mask, Nanoseconds now) {
  advance(now);
  s_.queues[index(queue)].mask = mask;
  s_.queues[index(queue)].mask_updates++;
  unmap_for_change(index(queue));
  for (std::uint32_t i = 0; i < s_.live_count; i++)
    if (Run& run = s_.runs[s_.live[i]]; run.queue == index(queue)) deal_anew(run);
  rerate();
}

void DeviceModel::set_priority(QueueIndex queue, std::int32_t priority, std::uint32_t percent,
                               Nanoseconds now) {
  advance(now);
  QueueState& state = s_.queues[index(queue)];
  state.priority = std::clamp(priority, -3, 3);
  state.percent = percent;
  state.priority_updates++;
  unmap_for_change(index(queue));
  rerate();
}

void DeviceModel::set_cpu_load(double load, Nanoseconds now) {
  advance(now);
  s_.cpu_load = std::clamp(load, 0.0, 1.0);
  if (govern()) rerate();
}

bool DeviceModel::set_level(Level level, Nanoseconds now) {
  advance(now);
  if ((s_.description.allowed_levels >> static_cast<unsigned>(level) & 1U) == 0) return false;
  if (level == Level::profile_exit) {
    // EINVAL without a profile to leave (amdgpu_dpm_force_performance_level).
    if (!is_profile(s_.level)) return false;
    level = s_.level_before_profile;
  }
  if (is_profile(level) && !is_profile(s_.level)) s_.level_before_profile = s_.level;
  s_.level = level;
  s_.level_writes++;
  if (!anything_running()) s_.sclk_mhz = 0;  // nobody sees the ramp
  govern();
  rerate();
  return true;
}

// What GFXOFF adds to the first launch after it.
std::int64_t DeviceModel::wake_ns() {
  if (s_.gfx_off == 0) return 0;
  s_.gfx_off = 0;
  s_.idle_since_ns = s_.now_ns;
  return std::int64_t{s_.description.power.gfxoff_wake_us} * 1000;
}

std::optional<RunIndex> DeviceModel::launch(QueueIndex queue, const KernelCost& cost,
                                            Nanoseconds now) {
  advance(now);
  if (s_.live_count == kMaxRuns) return std::nullopt;
  const auto free = std::find_if(s_.runs.begin(), s_.runs.end(),
                                 [](const Run& run) { return run.phase == RunPhase::none; });
  Run& run = *free;
  if (!anything_running()) s_.governor_ns = s_.now_ns + kGovernorPeriodNs;
  run.phase = RunPhase::launching;
  run.queue = index(queue);
  deal(run, cost);
  run.group_ns = cost.ns_per_workgroup;
  run.waves_per_group = cost.waves_per_workgroup;
  run.room_ns = run.begin_ns = 0;
  run.start_ns = s_.now_ns + s_.description.dispatch_overhead_ns + wake_ns();
  run.end_ns = 0;
  const auto i = static_cast<std::uint32_t>(free - s_.runs.begin());
  s_.live[s_.live_count++] = i;
  return RunIndex{i};
}

std::optional<RunTimes> DeviceModel::collect(RunIndex run) {
  const auto i = static_cast<std::uint32_t>(run);
  if (s_.runs[i].phase != RunPhase::ended) return std::nullopt;
  const RunTimes times{Nanoseconds{s_.runs[i].begin_ns}, Nanoseconds{s_.runs[i].end_ns}};
  const auto end = s_.live.begin() + s_.live_count;
  const auto at = std::find(s_.live.begin(), end, i);
  if (at != end) free_live(static_cast<std::uint32_t>(at - s_.live.begin()));
  return times;
}

std::optional<Nanoseconds> DeviceModel::expected_end(RunIndex index) const {
  const Run& run = s_.runs[static_cast<std::uint32_t>(index)];
  switch (run.phase) {
    case RunPhase::none:
      return std::nullopt;
    case RunPhase::ended:
      return Nanoseconds{run.end_ns};
    // Not rated yet; its start is an event at which to look again.
    case RunPhase::launching:
      return Nanoseconds{run.start_ns};
    case RunPhase::executing:
      break;
  }
  std::optional<Nanoseconds> end;
  if (const double left = time_left(run); !std::isinf(left))
    end = Nanoseconds{s_.now_ns + static_cast<std::int64_t>(std::min(std::ceil(left), 1e15))};
  if (run.room_ns > s_.now_ns && (!end || run.room_ns < end->count()))
    end = Nanoseconds{run.room_ns};
  return end;
}

}  // namespace apusched::softapu
