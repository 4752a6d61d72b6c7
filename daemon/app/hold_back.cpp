// SPDX-License-Identifier: MIT
#include "app/hold_back.hpp"

#include <algorithm>
#include <utility>

namespace apusched::app {
namespace {

using core::FrozenShare;

constexpr std::uint64_t kWhole = 100;
/// Some periods of the guard, and one of its reactions to the first order.
constexpr core::Moment kFreezerSettles{300};

core::Error no_freezer(const std::string& id) {
  return {core::ErrorCode::unsupported, "freeze", id, "the freezer is not available"};
}

}  // namespace

void FreezerBackend::read(const std::string& id, ReadCallback done) {
  if (freezer_ == nullptr) return done(tl::unexpected(no_freezer(id)));
  const auto found = freezer_->read(id);
  if (!found) return done(tl::unexpected(found.error()));
  done(core::LeverValue(*found));
}

/// Our own share shows as stopped or running by turns: only where it is expected to run can it be
/// told whether somebody else has stopped it, and that the guard does.
void FreezerBackend::write(const std::string& id, const core::LeverValue& value,
                           const core::LeverValue& /*expected*/, DoneCallback done) {
  if (freezer_ == nullptr) return done(tl::unexpected(no_freezer(id)));
  freezer_->set(id, std::get<FrozenShare>(value), std::move(done));
}

std::string FreezerBackend::refuse(const core::LeverValue& found) const {
  if (std::get<FrozenShare>(found).value() == 0) return {};
  return "somebody else has frozen it";
}

HoldBack::HoldBack(ports::Freezer* freezer, SharedLever& lever, ports::ProcessSource& processes,
                   const core::Config& config, const Registrations& registrations)
    : freezer_(freezer),
      lever_(lever),
      processes_(processes),
      config_(config),
      registrations_(registrations) {
  if (freezer_ == nullptr) return;
  freezer_->on_foreign([this](const std::string& unit, FrozenShare found) {
    lever_.observed(unit, found, std::chrono::steady_clock::time_point::max());
  });
}

std::string HoldBack::why_not(const std::string& unit,
                              const std::set<core::Pid>& background) const {
  const auto inside = freezer_->processes(unit);
  if (!inside) return core::to_sentence(inside.error());
  return core::why_not_frozen(unit, *inside, background);
}

HoldBack::Units HoldBack::look() const {
  Units result;
  std::set<core::Pid> background;
  for (const auto& [other, registration] : registrations_) {
    if (registration.profile.work_class != core::WorkClass::background) continue;
    for (const auto& [pid, member] : registration.members) background.insert(pid);
    result.try_emplace(core::unit_path_of(registration.placement.unified));
  }
  for (auto& [unit, why] : result) why = why_not(unit, background);
  return result;
}

std::string HoldBack::why_none_acts(const Units& units, bool& being_written) const {
  if (auto why = freezer_->why_not(); !why.empty()) return why;
  std::string first = "nothing is registered with a background profile";
  bool some = false;
  for (const auto& [unit, why] : units) {
    const auto state = held_.contains(unit) ? lever_.state(unit) : std::nullopt;
    const bool pending = state && state->outcome == core::Outcome::pending;
    being_written |= pending;
    const bool refused = state && !pending && state->outcome != core::Outcome::applied;
    if (why.empty() && !refused) some = true;
    if (!why.empty() || refused) first = why.empty() ? unit + ": " + state->detail : why;
  }
  return some ? std::string() : first;
}

std::vector<core::Rung> HoldBack::rungs(core::RegistrationId id, bool needed) {
  if (freezer_ == nullptr || config_.control.freeze_percent == 0) return {};
  core::Rung rung{
      std::string(core::to_string(core::LeverKind::freezer)), true, {}, true, kFreezerSettles, 0};
  if (needed || wanted_.contains(id)) {
    const auto units = look();
    follow(units);
    rung.why_not =
        why_none_acts(may_ask_others(registrations_, id) ? units : Units{}, rung.being_written);
  }
  rung.available = rung.why_not.empty();
  return {rung};
}

void HoldBack::want(core::RegistrationId id, core::Latency loop, bool wanted) {
  auto& loops = wanted_[id];
  if (wanted)
    loops.insert(loop);
  else
    loops.erase(loop);
  if (loops.empty()) wanted_.erase(id);
  update(id, wanted_.contains(id) ? look() : Units{});
}

void HoldBack::update(core::RegistrationId id, const Units& units) {
  const auto share = FrozenShare::make(config_.control.freeze_percent);
  for (const auto& [unit, why] : units)
    if (why.empty() && held_[unit].insert(id).second) lever_.hold(unit, {id, *share});
  for (auto item = held_.begin(); item != held_.end();) {
    const auto found = units.find(item->first);
    const bool stays = found != units.end() && found->second.empty();
    if (!stays && item->second.erase(id) > 0) lever_.release(item->first, id);
    item = item->second.empty() ? held_.erase(item) : std::next(item);
  }
}

void HoldBack::follow() {
  if (!wanted_.empty()) follow(look());
}

void HoldBack::follow(const Units& units) {
  std::vector<core::RegistrationId> ids;
  for (const auto& [id, loops] : wanted_) ids.push_back(id);
  for (const auto id : ids) update(id, units);
}

std::chrono::nanoseconds HoldBack::kept_from_others(core::RegistrationId id) {
  if (!wanted_.contains(id)) {
    used_.erase(id);
    return std::chrono::nanoseconds{0};
  }
  auto before = std::exchange(used_[id], {});
  auto& now = used_.at(id);
  std::uint64_t grown = 0;
  for (const auto& [other, registration] : registrations_) {
    if (registration.profile.work_class != core::WorkClass::background) continue;
    const auto unit = held_.find(core::unit_path_of(registration.placement.unified));
    if (unit == held_.end() || !unit->second.contains(id)) continue;
    for (const auto& [pid, member] : registration.members) {
      const auto time = processes_.activity(pid);
      if (!time) continue;
      now.emplace(pid, *time);
      const auto last = before.find(pid);
      if (last != before.end() && *time > last->second) grown += *time - last->second;
    }
  }
  const std::uint64_t share = config_.control.freeze_percent;
  return std::chrono::nanoseconds(grown * share / (kWhole - share));
}

void HoldBack::end(core::RegistrationId id) {
  if (wanted_.erase(id) > 0) update(id, {});
  follow();
}

}  // namespace apusched::app
