// SPDX-License-Identifier: MIT
#include "app/gpu_control.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace apusched::app {
namespace {

using namespace std::chrono_literals;

/// Waits are measured where a sample finds packets waiting: a process that dispatches now and then
/// has none for a while.
constexpr core::Moment kStale = 3s;
constexpr core::Moment kLetGo = 10s;
/// Waits of packets scatter more than waits for a CPU, and what others lose is dear: sure rather
/// than quick. With ten before and ten after, chance alone reaches this once in about eighty times.
constexpr std::uint32_t kCompared = 10;
constexpr double kSuperiority = 0.8;
/// While it is not known what is good and nobody is in the way, everything is.
constexpr double kAnything = 1e12;

core::ControlSettings dispatch_settings(const core::ControlSection& control) {
  core::ControlSettings settings;
  settings.relax_after = control.relax_after;
  settings.retry_after = control.retry_after;
  settings.stale_after = kStale;
  settings.let_go_after = kLetGo;
  settings.compared = kCompared;
  settings.min_superiority = kSuperiority;
  settings.sure_gain = kSureGain;
  return settings;
}

}  // namespace

GpuControl::GpuControl(AgentWatch& agents, ControlBook& book, ports::EventLoop& loop,
                       const core::Config& config, const Registrations& registrations)
    : agents_(agents), book_(book), loop_(loop), config_(config), registrations_(registrations) {}

void GpuControl::set_gpus(const std::vector<ports::GpuFacts>& gpus) {
  priority_acts_.clear();
  for (const auto& gpu : gpus)
    priority_acts_.emplace(gpu.pci, core::priority_acts_between_processes(gpu.isa));
}

void GpuControl::follow() {
  if (!config_.control.enabled) return;
  std::vector<core::RegistrationId> there;
  for (const auto& [pci, parties] : agents_.parties(registrations_))
    for (const auto& party : parties)
      if (registrations_.at(party.id).profile.target_dispatch) there.push_back(party.id);
  bool changed = false;
  for (auto item = targets_.begin(); item != targets_.end();) {
    const bool stays = std::ranges::find(there, item->first) != there.end();
    changed |= !stays && !item->second.steering.engaged().empty();
    if (!stays && apply_) apply_(item->first, {});
    item = stays ? std::next(item) : targets_.erase(item);
  }
  for (const auto id : there)
    if (!targets_.contains(id))
      targets_.emplace(
          id, Target{Steering(book_, core::Latency::dispatch, id, registrations_.at(id).key.pid,
                              dispatch_settings(config_.control)),
                     {},
                     false});
  if (changed) press();
  if (targets_.empty())
    timer_.reset();
  else if (!timer_)
    arm();
}

void GpuControl::end(core::RegistrationId id) {
  const auto target = targets_.extract(id);
  if (!target.empty() && !target.mapped().steering.engaged().empty()) press();
  if (targets_.empty()) timer_.reset();
}

/// While all of them are idle, no more often than they are scanned anyway.
void GpuControl::arm() {
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

void GpuControl::tick() {
  agents_.collect();
  const auto parties = agents_.parties(registrations_);
  const auto now = moment(loop_);
  bool changed = false;
  for (auto& [id, target] : targets_) changed |= step(id, target, now, parties);
  if (changed) press();
}

/// Those of a lower class on the same GPUs that nobody measures: while they run, they are taken to
/// keep the GPU busy.
std::vector<core::GpuParty> GpuControl::without_agent(const Registration& self) const {
  std::vector<core::GpuParty> result;
  const auto measured = agents_.holders();
  for (const auto& [id, registration] : registrations_) {
    const auto work_class = registration.profile.work_class;
    if (work_class >= self.profile.work_class || !works(registration, config_.limits)) continue;
    const bool shares = std::ranges::any_of(
        registration.gpus, [&](const std::string& gpu) { return self.gpus.contains(gpu); });
    if (shares && !measured.contains(id)) result.push_back({id, work_class, {}, false, {}, 1.0});
  }
  return result;
}

bool GpuControl::step(core::RegistrationId id, Target& target, core::Moment now,
                      const Parties& parties) {
  const core::GpuParty* self = nullptr;
  std::vector<core::GpuParty> beside;
  bool priority_acts = false;
  for (const auto& [pci, here] : parties) {
    const auto found = std::ranges::find(here, id, &core::GpuParty::id);
    if (found == here.end()) continue;
    self = &*found;
    priority_acts |= priority_acts_.contains(pci) && priority_acts_.at(pci);
    beside.insert(beside.end(), here.begin(), here.end());
  }
  if (self == nullptr) return false;
  const auto& registration = registrations_.at(id);
  for (auto& party : without_agent(registration)) beside.push_back(party);
  const auto allowed = registration.profile.target_dispatch;
  const auto seen = agents_.take(id);
  core::ControlInput input{now, seen.worked, seen.wait_us, core::rivalry(beside, *self), {}};
  const bool disturbed = input.rival >= core::ControlSettings{}.rival_floor;
  // What is too long while nobody is in the way is no yardstick before everything was tried.
  const auto state = target.steering.state();
  const bool violating = state == core::ControlState::violating;
  if (seen.wait_us)
    target.baseline.add(*seen.wait_us,
                        !disturbed && !violating && target.steering.engaged().empty());
  const bool known = target.baseline.undisturbed().has_value();
  input.target = known || disturbed ? target.baseline.target(*allowed, target.explored) : kAnything;
  input.rungs = core::gpu_rungs(beside, *self, priority_acts);
  // After those that reach rivals: without rivals these are all there is, with them they are last.
  const bool misses = violating || state == core::ControlState::saturated;
  if (rungs_of_) std::ranges::move(rungs_of_(id, misses), std::back_inserter(input.rungs));
  const bool changed = target.steering.step(input);
  if (changed && apply_) apply_(id, target.steering.engaged());
  target.explored |= target.steering.state() == core::ControlState::saturated;
  return changed;
}

void GpuControl::press() {
  std::map<core::PciAddress, core::GpuPressure> pressure;
  for (const auto& [id, target] : targets_) {
    const auto registration = registrations_.find(id);
    if (registration == registrations_.end() || target.steering.engaged().empty()) continue;
    const auto asked =
        core::pressure_of(target.steering.engaged(), registration->second.profile.work_class);
    for (const auto& gpu : registration->second.gpus) {
      const auto pci = core::PciAddress::parse(gpu);
      if (!pci) continue;
      const auto [found, fresh] = pressure.try_emplace(*pci, asked);
      if (!fresh) found->second = core::stronger(found->second, asked);
    }
  }
  agents_.press(std::move(pressure));
  if (pressed_) pressed_();
}

std::optional<ControlView> GpuControl::view(core::RegistrationId id) const {
  const auto found = targets_.find(id);
  if (found == targets_.end()) return std::nullopt;
  auto view = found->second.steering.view();
  if (view.target_us >= kAnything) view.target_us = 0;
  return view;
}

}  // namespace apusched::app
