// SPDX-License-Identifier: MIT
// The part of app::Service that applies levers and follows their processes.
#include <algorithm>

#include "app/service.hpp"

namespace apusched::app {
namespace {

core::Rung rung_of(const core::LeverStatus& status) {
  core::Rung rung{std::string(core::to_string(status.kind)), true, {}, true, core::Moment{200}, 0};
  // While it is being written it is pending.
  rung.available =
      status.outcome == core::Outcome::applied || status.outcome == core::Outcome::pending;
  rung.being_written = status.outcome == core::Outcome::pending;
  if (!rung.available)
    rung.why_not =
        status.detail.empty() ? std::string(core::to_string(status.outcome)) : status.detail;
  return rung;
}

}  // namespace

void Service::set_status(Registration& registration, core::LeverStatus status) {
  const auto kind = status.kind;
  const auto found = registration.levers.find(kind);
  if (found != registration.levers.end() && found->second == status) return;
  const auto outcome = status.outcome;
  registration.levers.insert_or_assign(kind, std::move(status));
  if (outcome != core::Outcome::pending)
    ports_.report.lever(registration.id, registration.levers.at(kind));
}

/// What a registration wants of a shared lever that its profile sets.
core::LeverValue Service::wish_of(const Registration& registration, core::LeverKind kind) const {
  const auto& profile = registration.profile;
  const bool strong = is_engaged(registration, kind);
  switch (kind) {
    case core::LeverKind::autogroup:
      return strong ? std::min(*profile.autogroup_nice, config_.control.strong_autogroup_nice)
                    : *profile.autogroup_nice;
    case core::LeverKind::cpu_weight: {
      const auto most = core::Weight::make(config_.control.strong_cpu_weight);
      return strong && most && most->effective() > profile.cpu_weight->effective()
                 ? *most
                 : *profile.cpu_weight;
    }
    case core::LeverKind::io_weight:
      return *profile.io_weight;
    default:
      return *profile.performance_level;
  }
}

/// Nice reaches the rivals in the process's own group, the group levers all others; which of those
/// can act depends on where the process stands. What reaches somebody who works comes first.
std::vector<core::Rung> Service::rungs_of(core::RegistrationId id) {
  const auto found = registrations_.find(id);
  if (found == registrations_.end()) return {};
  auto& registration = found->second;
  if (control_.misses(id)) neighbours_.look(registration);
  if (control_.misses(id) || is_engaged(registration, core::LeverKind::slice_weight))
    slices_status(registration);
  using enum core::LeverKind;
  std::vector<core::LeverKind> order{autogroup, cpu_weight, slice_weight, nice};
  if (neighbours_.busy(id)) order = {nice, autogroup, cpu_weight, slice_weight};
  auto& refused = registration.strong_nice_refused;
  refused.forget_after(config_.control.retry_after, ports_.loop.now());
  std::vector<core::Rung> rungs;
  for (const auto kind : order) {
    const auto status = registration.levers.find(kind);
    if (status == registration.levers.end()) continue;  // the profile does not set it
    rungs.push_back(rung_of(status->second));
    if (kind != nice || refused.why().empty()) continue;
    rungs.back().available = false;
    rungs.back().why_not = refused.why();
  }
  for (auto& rung : hold_back_.rungs(id, control_.misses(id))) rungs.push_back(std::move(rung));
  return rungs;
}

void Service::hold_strongly(core::RegistrationId id, const std::vector<std::string>& engaged) {
  const auto found = registrations_.find(id);
  if (found == registrations_.end()) return;
  auto& registration = found->second;
  const auto before = std::exchange(registration.engaged, engaged);
  const auto changed = [&](core::LeverKind kind) {
    const bool was = std::ranges::find(before, core::to_string(kind)) != before.end();
    return was != is_engaged(registration, kind);
  };
  if (changed(core::LeverKind::nice)) hold_nice(registration);
  if (changed(core::LeverKind::autogroup) && registration.placement.autogroup &&
      autogroup_.state(*registration.placement.autogroup))
    autogroup_.hold(*registration.placement.autogroup,
                    {id, wish_of(registration, core::LeverKind::autogroup)});
  if (changed(core::LeverKind::cpu_weight) && !registration.unit.empty())
    cpu_weight_.hold(registration.unit, {id, wish_of(registration, core::LeverKind::cpu_weight)});
  if (changed(core::LeverKind::slice_weight)) hold_slices(registration);
  if (changed(core::LeverKind::freezer))
    hold_back_.want(id, core::Latency::cpu_wait,
                    is_engaged(registration, core::LeverKind::freezer));
}

void Service::apply_autogroup(Registration& registration) {
  if (!registration.profile.autogroup_nice) return;
  const auto wish = *registration.profile.autogroup_nice;
  const auto reach = core::reach_of(core::LeverKind::autogroup, registration.placement);
  if (!reach.acts)
    return set_status(registration, {core::LeverKind::autogroup, core::Outcome::unsupported,
                                     registration.placement.autogroup.value_or(""),
                                     core::to_string(wish), reach.explanation});
  const auto group = *registration.placement.autogroup;
  autogroup_backend_.hint(group, registration.key.pid);
  autogroup_.hold(group, {registration.id, wish});
}

void Service::apply_weights(Registration& registration) {
  if (!registration.profile.cpu_weight && !registration.profile.io_weight) return;
  ports_.units.find(registration.key.pid,
                    [this, id = registration.id](const core::Result<ports::UnitFacts>& facts) {
                      unit_known(id, facts);
                    });
}

void Service::unit_known(core::RegistrationId id, const core::Result<ports::UnitFacts>& facts) {
  const auto found = registrations_.find(id);
  if (found == registrations_.end()) return;
  auto& registration = found->second;
  const auto& profile = registration.profile;
  const auto refuse = [&](core::LeverKind kind, const std::optional<core::Weight>& weight,
                          core::Outcome outcome, const std::string& target,
                          const std::string& why) {
    if (weight) set_status(registration, {kind, outcome, target, core::to_string(*weight), why});
  };
  if (!facts || facts->of_user_manager) {
    const auto outcome = facts ? core::Outcome::unsupported
                         : facts.error().code == core::ErrorCode::gone
                             ? core::Outcome::unsupported
                             : core::outcome_of(facts.error());
    const auto why = facts ? "the process belongs to that user's own service manager, whose units "
                             "the system manager cannot set"
                           : facts.error().detail;
    const auto target = facts ? facts->name : std::string();
    refuse(core::LeverKind::cpu_weight, profile.cpu_weight, outcome, target, why);
    refuse(core::LeverKind::io_weight, profile.io_weight, outcome, target, why);
    if (observer_ != nullptr) observer_->on_changed(id);
    return;
  }
  registration.unit = facts->name;
  if (profile.cpu_weight) cpu_weight_.hold(facts->name, {id, *profile.cpu_weight});
  if (profile.io_weight) io_weight_.hold(facts->name, {id, *profile.io_weight});
}

void Service::follow_gpus(Registration& registration) {
  std::set<std::string> now;
  for (const auto& [pid, member] : registration.members)
    for (const auto& gpu : gpu_watch_.gpus_of(pid)) now.insert(gpu.text());
  if (now == registration.gpus) return;
  const auto before = std::exchange(registration.gpus, now);
  for (const auto& gpu : before)
    if (!now.contains(gpu)) level_.release(gpu, registration.id);
  if (registration.profile.performance_level)
    for (const auto& gpu : now)
      if (!before.contains(gpu)) hold_level(registration, *core::PciAddress::parse(gpu));
  if (now.empty()) registration.levers.erase(core::LeverKind::performance_level);
  follow_agents_of(registration);
  if (observer_ != nullptr) observer_->on_changed(registration.id);
}

/// Unless it is not to be held now.
void Service::hold_level(Registration& registration, const core::PciAddress& gpu) {
  const auto level = *registration.profile.performance_level;
  const auto why = core::raises_clocks(level) ? level_control_.why_not(gpu) : std::string();
  if (why.empty()) return level_.hold(gpu.text(), {registration.id, level});
  level_.release(gpu.text(), registration.id);
  set_status(registration, {core::LeverKind::performance_level, core::Outcome::standby, gpu.text(),
                            std::string(core::to_string(level)), why});
  if (observer_ != nullptr) observer_->on_changed(registration.id);
}

void Service::follow_levels() {
  std::map<core::PciAddress, LevelControl::Wish> wishes;
  for (auto& [id, registration] : registrations_) {
    const auto level = registration.profile.performance_level;
    if (!level || !core::raises_clocks(*level)) continue;
    for (const auto& gpu : registration.gpus) {
      const auto pci = core::PciAddress::parse(gpu);
      if (!pci) continue;
      auto& wish = wishes.try_emplace(*pci, LevelControl::Wish{registration.key.pid}).first->second;
      wish.working |= works(registration, config_.limits) || agent_watch_.busy(id);
    }
  }
  if (!level_control_.update(wishes)) return;
  for (auto& [id, registration] : registrations_) {
    const auto level = registration.profile.performance_level;
    if (!level || !core::raises_clocks(*level)) continue;
    for (const auto& gpu : registration.gpus)
      hold_level(registration, *core::PciAddress::parse(gpu));
  }
}

/// Those that have an agent or had one: what is said of all others depends on themselves alone.
void Service::follow_agents() {
  if (agent_watch_.count() == 0 && with_agents_.empty()) return;
  agent_watch_.update(registrations_);
  gpu_control_.follow();
  const auto before = std::exchange(with_agents_, agent_watch_.holders());
  for (auto& [id, registration] : registrations_)
    if (before.contains(id) || with_agents_.contains(id)) follow_agents_of(registration);
}

void Service::follow_agents_of(Registration& registration) {
  const auto before = registration.levers;
  for (auto& status : agent_watch_.statuses(registration))
    set_status(registration, std::move(status));
  if (observer_ != nullptr && before != registration.levers) observer_->on_changed(registration.id);
}

/// It is shown where the unit's processes are registered, not where somebody wants them stopped.
void Service::freezer_changed(const std::string& unit) {
  const auto state = hold_back_.holds(unit) ? freezer_.state(unit) : std::nullopt;
  for (auto& [id, registration] : registrations_) {
    if (registration.profile.work_class != core::WorkClass::background) continue;
    if (core::unit_path_of(registration.placement.unified) != unit) continue;
    if (state)
      set_status(registration,
                 {core::LeverKind::freezer, state->outcome, std::string(core::unit_name_of(unit)),
                  std::to_string(config_.control.freeze_percent) + "%",
                  state->detail.empty() ? "stopped for this share of the time while a process of a "
                                          "higher class misses its target"
                                        : state->detail});
    else
      registration.levers.erase(core::LeverKind::freezer);
    if (observer_ != nullptr) observer_->on_changed(id);
  }
  finish_stop();
}

void Service::shared_changed(core::LeverKind kind, const std::string& resource) {
  if (kind == core::LeverKind::freezer) return freezer_changed(resource);
  if (kind == core::LeverKind::energy_preference) return energy_changed();
  const auto state = lever(kind).state(resource);
  for (auto& [id, registration] : registrations_) {
    const auto& profile = registration.profile;
    bool mine = false;
    switch (kind) {
      case core::LeverKind::autogroup:
        mine = registration.placement.autogroup == resource && profile.autogroup_nice;
        break;
      case core::LeverKind::performance_level:
        mine = registration.gpus.contains(resource) && profile.performance_level;
        break;
      case core::LeverKind::cpu_weight:
        mine = registration.unit == resource && profile.cpu_weight;
        break;
      default:
        mine = registration.unit == resource && profile.io_weight;
    }
    if (kind == core::LeverKind::cpu_weight && registration.slices.contains(resource))
      slice_changed(registration);
    if (!mine || !state) continue;
    const auto wish = core::to_string(wish_of(registration, kind));
    const auto detail = state->detail.empty()
                            ? core::reach_of(kind, registration.placement).explanation
                            : state->detail;
    set_status(registration, {kind, state->outcome, resource, wish, detail});
    if (observer_ != nullptr) observer_->on_changed(id);
  }
  if (kind == core::LeverKind::performance_level && observer_ != nullptr)
    if (const auto gpu = core::PciAddress::parse(resource)) observer_->on_gpu_changed(*gpu);
  finish_stop();
}

}  // namespace apusched::app
