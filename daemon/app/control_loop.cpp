// SPDX-License-Identifier: MIT
#include "app/control_loop.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace apusched::app {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

/// The busiest threads of a process are sampled; an engine has one that dispatches and a few that
/// compute or wait.
constexpr std::size_t kThreadsEach = 8;
/// Read in one tick, whatever is registered: about 0.1 ms.
constexpr std::size_t kThreadsPerTick = 64;
/// So many processes cost nothing that matters at the full rate.
constexpr std::size_t kFew = 16;
constexpr std::size_t kStepsPerTick = 128;
constexpr auto kSlowest = 500ms;
/// Steps in a row in which others have to be seen wanting a CPU.
constexpr std::size_t kLasting = 3;
constexpr double kReader = 1;  ///< the daemon itself, which runs while it looks
/// A thread that used less since the last scan does not matter.
constexpr auto kHardlyRan = 100us;

double microseconds(nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

/// How often it could have been made to wait: each time that it got the CPU, and while it kept it
/// each millisecond. Otherwise a thread that computes on, which a kernel thread interrupts twice in
/// 100 ms for 60 µs, would wait 60 µs on average, and has lost a thousandth.
double occasions(const ports::ThreadTimes& before, const ports::ThreadTimes& after) {
  const auto kept = static_cast<double>((after.ran - before.ran) / 1ms);
  return std::max({1.0, static_cast<double>(after.slices - before.slices), kept});
}

}  // namespace

ControlLoop::ControlLoop(ports::Meters* meters, ControlBook& book, ports::EventLoop& loop,
                         const core::Config& config)
    : meters_(meters), book_(book), loop_(loop), config_(config) {}

core::ControlSettings ControlLoop::settings_of(const core::Profile& profile) const {
  core::ControlSettings settings;
  settings.target = static_cast<double>(profile.target_wait->value());
  settings.relax_after = config_.control.relax_after;
  settings.retry_after = config_.control.retry_after;
  settings.sure_gain = kSureGain;
  return settings;
}

void ControlLoop::begin(const Registration& registration) {
  const auto id = registration.id;
  if (meters_ == nullptr || !config_.control.enabled || !registration.profile.target_wait) return;
  auto found = targets_.find(id);
  if (found == targets_.end())
    found = targets_
                .emplace(id, Steering(book_, core::Latency::cpu_wait, id, registration.key.pid,
                                      settings_of(registration.profile)))
                .first;
  auto& target = found->second;
  target.limit_us = static_cast<double>(registration.profile.target_wait->value());
  choose_threads(target, registration);
  std::erase_if(target.used,
                [&](const auto& item) { return !registration.members.contains(item.first); });
  for (const auto& [pid, member] : registration.members) target.used.try_emplace(pid, std::nullopt);
  if (!timer_) arm();
}

void ControlLoop::end(core::RegistrationId id) {
  targets_.erase(id);
  if (!targets_.empty()) return;
  timer_.reset();
}

std::size_t ControlLoop::threads_each() const {
  return std::clamp(kThreadsPerTick / std::max<std::size_t>(1, targets_.size()), std::size_t{1},
                    kThreadsEach);
}

/// Those that ran most since the last scan; a thread that is still among them keeps its meter.
void ControlLoop::choose_threads(Target& target, const Registration& registration) {
  struct Candidate {
    core::Pid pid;
    core::Tid tid;
    nanoseconds ran;
  };
  std::vector<Candidate> candidates;
  std::map<core::Tid, nanoseconds> now;
  for (const auto& [pid, member] : registration.members) {
    const auto threads = meters_->threads(pid, config_.limits.max_threads_per_process);
    if (!threads) continue;
    for (const auto& thread : *threads) {
      now.emplace(thread.tid, thread.ran);
      const auto before = target.ran.find(thread.tid);
      const auto ran = before == target.ran.end() ? thread.ran : thread.ran - before->second;
      if (ran >= kHardlyRan) candidates.push_back({pid, thread.tid, ran});
    }
  }
  target.ran = std::move(now);
  std::erase_if(target.threads, [&](const auto& item) { return !target.ran.contains(item.first); });
  if (candidates.empty()) return;
  const auto count = std::min(candidates.size(), threads_each());
  std::ranges::partial_sort(candidates, candidates.begin() + static_cast<std::ptrdiff_t>(count),
                            std::ranges::greater{}, &Candidate::ran);
  std::map<core::Tid, Thread> chosen;
  for (const auto& candidate : std::span(candidates).first(count)) {
    if (auto kept = target.threads.extract(candidate.tid); !kept.empty()) {
      chosen.insert(std::move(kept));
    } else if (auto meter = meters_->open(candidate.pid, candidate.tid)) {
      chosen.emplace(candidate.tid, Thread{std::move(*meter), {}});
    }
  }
  target.threads = std::move(chosen);
}

/// While all of them are idle, no more often than they are scanned anyway.
void ControlLoop::arm() {
  const bool idle = std::ranges::all_of(targets_, [](const auto& item) {
    return item.second.steering.state() == core::ControlState::idle;
  });
  const auto delay =
      idle ? std::max(config_.control.tick, config_.limits.scan_interval) : config_.control.tick;
  timer_ = loop_.after(delay, [this] {
    const auto done = std::move(timer_);
    tick();
    if (!targets_.empty()) arm();
  });
}

void ControlLoop::tick() {
  const auto now = moment(loop_);
  std::optional<ports::MachineTimes> machine;
  // Applying what was decided must not change the list under our feet.
  std::vector<core::RegistrationId> ids;
  for (const auto& [id, target] : targets_)
    if (due(target, now)) ids.push_back(id);
  for (const auto id : ids)
    if (const auto found = targets_.find(id); found != targets_.end())
      step(id, found->second, now, machine);
}

/// A few are looked at in each tick. Of many, those that are idle no more often than they are
/// scanned, and the others the less often the more there are, but twice within the second after
/// which their readings would count as missing.
bool ControlLoop::due(const Target& target, core::Moment now) const {
  const auto count = targets_.size();
  if (count <= kFew || !target.stepped) return true;
  const auto tick = config_.control.tick;
  const auto turns = static_cast<int>(count / kStepsPerTick);
  const auto interval = target.steering.state() == core::ControlState::idle
                            ? std::max(tick, config_.limits.scan_interval)
                            : std::max(tick, std::min<core::Moment>(tick * turns, kSlowest));
  // A timer fires late, never early: half a tick makes up for that.
  return now - *target.stepped + tick / 2 >= interval;
}

void ControlLoop::sample(Target& target, Observed& seen) {
  for (auto item = target.threads.begin(); item != target.threads.end();) {
    const auto times = item->second.meter->read();
    if (!times) {
      item = target.threads.erase(item);
      continue;
    }
    const auto last = std::exchange((item++)->second.last, *times);
    if (!last || times->ran <= last->ran) continue;
    seen.worked = true;
    seen.waited +=
        std::clamp(seen.passed - (times->ran - last->ran), 0ns, times->waited - last->waited);
    // The thread that waits longest decides: work is handed from one to the next.
    const auto wait = microseconds(times->waited - last->waited) / occasions(*last, *times);
    seen.wait_us = std::max(seen.wait_us.value_or(0), wait);
  }
}

/// CPU time of all members since the last tick.
nanoseconds ControlLoop::own_time(Target& target) {
  nanoseconds own{0};
  for (auto& [pid, used] : target.used) {
    const auto time = meters_->process(pid);
    if (!time) continue;
    if (used) own += *time - *used;
    used = *time;
  }
  return own;
}

/// What others use of the machine, or want to: a lever that works keeps them from it, and has not
/// ended the contention by that. Wanting is seen at moments only: it counts when it lasts.
double ControlLoop::rival_of(core::RegistrationId id, Target& target, const Observed& seen,
                             const ports::MachineTimes& machine) {
  const auto before = std::exchange(target.machine, machine);
  if (!before) return 0;
  const auto all = static_cast<double>((machine.all - before->all).count());
  const auto span = static_cast<double>(nanoseconds(seen.passed).count());
  if (all <= 0 || span <= 0) return 0;
  const auto used = static_cast<double>((machine.busy - before->busy - seen.own).count()) / all;
  const auto ours = static_cast<double>((seen.own + seen.waited).count()) / span;
  target.wanted.push_back(machine.runnable - kReader - ours);
  if (target.wanted.size() > kLasting) target.wanted.pop_front();
  const auto lasting = target.wanted.size() < kLasting ? 0 : std::ranges::min(target.wanted);
  const auto cpus = all / span;
  const auto kept = kept_back_ ? static_cast<double>(kept_back_(id).count()) / all : 0;
  return std::min(1.0, std::clamp(std::max(used, lasting / cpus), 0.0, 1.0) + kept);
}

/// Most of the time all is well and nothing held: then neither the machine nor what could be done
/// is looked at. They are from the first miss on, and a decision takes two.
void ControlLoop::step(core::RegistrationId id, Target& target, core::Moment now,
                       std::optional<ports::MachineTimes>& machine) {
  const auto stepped = std::exchange(target.stepped, now);
  Observed seen;
  seen.own = own_time(target);
  seen.passed = stepped ? now - *stepped : core::Moment{0};
  // A wait is booked when it ends, and then the thread runs: where none has, there is nothing to
  // read. What the clock shows a moment before the schedstat does is seen when it runs again.
  if (seen.own > 0ns || !stepped) sample(target, seen);
  if (!stepped) return;
  if (seen.wait_us) target.missed = *seen.wait_us > target.limit_us;
  core::ControlInput input{now, seen.worked, seen.wait_us, 0, {}};
  if (target.missed || !target.steering.is_at_rest()) {
    if (!machine) machine = measured();
    if (!machine) return;
    // For one that is idle and stays so nothing is to be tried.
    if (seen.worked || target.steering.state() != core::ControlState::idle)
      input.rungs = rungs_of_(id);
    input.rival = rival_of(id, target, seen, *machine);
  } else {
    target.machine.reset();
    target.wanted.clear();
  }
  if (target.steering.step(input) && apply_) apply_(id, target.steering.engaged());
}

std::optional<ports::MachineTimes> ControlLoop::measured() {
  const auto machine = meters_->machine();
  return machine ? std::optional(*machine) : std::nullopt;
}

bool ControlLoop::misses(core::RegistrationId id) const {
  const auto found = targets_.find(id);
  return found != targets_.end() && found->second.missed;
}

std::optional<ControlView> ControlLoop::view(core::RegistrationId id) const {
  const auto found = targets_.find(id);
  if (found == targets_.end()) return std::nullopt;
  return found->second.steering.view();
}

}  // namespace apusched::app
