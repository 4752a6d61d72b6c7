// SPDX-License-Identifier: MIT
#include "app/background_energy.hpp"

#include <algorithm>

#include "app/checked_write.hpp"

namespace apusched::app {
namespace {

using core::EnergyPreference;
using Clock = std::chrono::steady_clock;

/// The firmware moves power between CPU and GPU by averages over about a second. Not measured here.
constexpr core::Moment kEnergySettles{1000};
/// Background work is worth acting against if it used more than this share of a CPU between two
/// scans, a moment ago: what waits for a disk now and then goes on at once.
constexpr int kWorthActingShare = 10;
constexpr std::chrono::seconds kLull{2};

core::Error no_energy(const std::string& id) {
  return {core::ErrorCode::unsupported, "set energy preference of", id,
          "CPUs have no energy performance preference"};
}

}  // namespace

void EnergyBackend::read(const std::string& id, ReadCallback done) {
  if (port_ == nullptr) return done(tl::unexpected(no_energy(id)));
  const auto found = port_->read(id);
  if (!found) return done(tl::unexpected(found.error()));
  done(core::LeverValue(*found));
}

void EnergyBackend::write(const std::string& id, const core::LeverValue& value,
                          const core::LeverValue& expected, DoneCallback done) {
  if (port_ == nullptr) return done(tl::unexpected(no_energy(id)));
  done(write(id, std::get<EnergyPreference>(value), std::get<EnergyPreference>(expected)));
}

core::Result<void> EnergyBackend::write(const std::string& id, EnergyPreference value,
                                        EnergyPreference expected) {
  return checked_write(
      "set energy preference of", id, value, expected, [&] { return port_->read(id); },
      [&] { return port_->write(id, value); });
}

/// Somebody may have changed it since it was looked at.
std::string EnergyBackend::refuse(const core::LeverValue& found) const {
  const auto wish = core::preference_of(saving_);
  const auto& preference = std::get<EnergyPreference>(found);
  if (wish && wish->saves_more_than(preference)) return {};
  return "it was already " + preference.text() + ", which saves as much energy";
}

BackgroundEnergy::BackgroundEnergy(ports::CpuEnergy* port, SharedLever& lever,
                                   ports::ProcessSource& processes, ports::EventLoop& loop,
                                   const core::Config& config, const Registrations& registrations,
                                   bool dry_run)
    : port_(port),
      lever_(lever),
      processes_(processes),
      loop_(loop),
      config_(config),
      registrations_(registrations),
      wish_(core::preference_of(config.control.background_energy)),
      dry_run_(dry_run) {}

void BackgroundEnergy::note_work(Clock::time_point now) {
  const std::chrono::nanoseconds interval = config_.limits.scan_interval;
  std::erase_if(worked_, [&](const auto& item) {
    return now - item.second > kLull || !registrations_.contains(item.first);
  });
  for (const auto& [id, registration] : registrations_)
    if (registration.profile.work_class == core::WorkClass::background &&
        ran_lately(registration) > interval / kWorthActingShare)
      worked_.insert_or_assign(id, now);
}

core::CpuUse BackgroundEnergy::use() const {
  core::CpuUse use;
  auto budget = config_.limits.max_threads_per_scan;
  for (const auto& [id, registration] : registrations_) {
    const bool background = registration.profile.work_class == core::WorkClass::background;
    core::CpuSet cpus;
    for (const auto& [pid, member] : registration.members) {
      const auto found =
          processes_.affinity(pid, std::min(budget, config_.limits.max_threads_per_process));
      if (found) {
        cpus |= found->cpus;
        budget -= std::min(budget, found->threads);
      } else if (!background && found.error().code != core::ErrorCode::gone) {
        cpus.set();  // it may be anywhere
      }
    }
    (background ? use.background : use.others) |= cpus;
    if (worked_.contains(id)) use.working |= cpus;
  }
  return use;
}

/// Takes note of what others have done to policies that are held.
void BackgroundEnergy::notice(const std::vector<core::EnergyPolicy>& policies,
                              Clock::time_point asked) {
  for (const auto& policy : policies)
    if (held_.contains(policy.name)) lever_.observed(policy.name, policy.preference, asked);
  // It was somebody else's CPU that saved less when they were lowered.
  bool all_save = policies.size() > held_.size();
  for (const auto& policy : policies) all_save &= policy.preference == *wish_;
  for (const auto& [policy, ids] : held_) {
    if (all_save) lever_.disown(policy, "somebody set all CPUs to " + wish_->text());
    const auto state = lever_.state(policy);
    if (!state || state->outcome == core::Outcome::applied ||
        state->outcome == core::Outcome::pending)
      continue;
    const bool theirs = state->outcome == core::Outcome::contended;
    left_alone_.insert_or_assign(
        policy, LeftAlone{state->outcome, state->detail,
                          theirs ? Clock::time_point::max() : asked + config_.control.retry_after});
  }
}

void BackgroundEnergy::look() {
  const auto now = loop_.now();
  seen_at_ = now;
  const auto policies = port_->policies();
  if (!policies) {
    seen_ = core::Lowerable{{}, policies.error().detail};
    return;
  }
  notice(*policies, now);
  note_work(now);
  std::erase_if(left_alone_, [&](const auto& item) { return item.second.until <= now; });
  std::map<std::string, std::string> left_alone;
  for (const auto& [policy, why] : left_alone_) left_alone.emplace(policy, why.why);
  std::set<std::string> ours;
  for (const auto& [policy, ids] : held_)
    if (!left_alone_.contains(policy)) ours.insert(policy);
  seen_ = core::lowerable(*policies, use(), *wish_, ours, left_alone);
}

void BackgroundEnergy::refresh() {
  if (seen_ && loop_.now() - seen_at_ < config_.limits.scan_interval) return;
  look();
  apply();
}

std::string BackgroundEnergy::why_not(core::RegistrationId id) const {
  if (!may_ask_others(registrations_, id)) return "the process is background work itself";
  if (!seen_->why_none.empty()) return seen_->why_none;
  return dry_run_ ? "this is a dry run" : "";
}

/// It acts against others, but not only against those on the GPU, which are the rivals that its
/// loop counts: it is unavailable where no background work runs that it acts against.
std::vector<core::Rung> BackgroundEnergy::rungs(core::RegistrationId id, bool needed) {
  if (port_ == nullptr || !wish_) return {};
  core::Rung rung{std::string(core::to_string(core::LeverKind::energy_preference)),
                  true,
                  {},
                  false,
                  kEnergySettles,
                  0};
  if (needed || wanted_.contains(id)) {
    asked_.insert(id);
    refresh();
    rung.why_not = why_not(id);
    rung.being_written = std::ranges::any_of(held_, [&](const auto& item) {
      const auto state = lever_.state(item.first);
      return state && state->outcome == core::Outcome::pending;
    });
  }
  rung.available = rung.why_not.empty();
  return {rung};
}

void BackgroundEnergy::want(core::RegistrationId id, bool wanted) {
  if (port_ == nullptr || !wish_ || wanted == wanted_.contains(id)) return;
  if (wanted) {
    wanted_.insert(id);
    look();
  } else {
    wanted_.erase(id);
  }
  apply();
}

void BackgroundEnergy::apply() {
  if (seen_)
    for (const auto& [policy, cpus] : seen_->policies)
      for (const auto id : wanted_)
        if (held_[policy].insert(id).second) lever_.hold(policy, {id, *wish_});
  for (auto item = held_.begin(); item != held_.end();) {
    const auto& policy = item->first;
    const bool stays = seen_ && seen_->policies.contains(policy);
    std::erase_if(item->second, [&](core::RegistrationId id) {
      const bool ends = !stays || !wanted_.contains(id);
      if (ends) lever_.release(policy, id);
      return ends;
    });
    item = item->second.empty() ? held_.erase(item) : std::next(item);
  }
}

void BackgroundEnergy::follow() {
  if (wanted_.empty()) return seen_.reset();
  look();
  apply();
}

void BackgroundEnergy::end(core::RegistrationId id) {
  want(id, false);
  asked_.erase(id);
  if (asked_.empty()) left_alone_.clear();
  follow();
}

core::Outcome BackgroundEnergy::outcome_of(const std::string& why) const {
  for (const auto& [policy, left] : left_alone_)
    if (why == policy + ": " + left.why) return left.outcome;
  return core::Outcome::unsupported;
}

std::optional<core::LeverStatus> BackgroundEnergy::status(core::RegistrationId id) const {
  if (port_ == nullptr || !wish_) return std::nullopt;
  core::LeverStatus status{core::LeverKind::energy_preference,
                           core::Outcome::standby,
                           {},
                           wish_->text(),
                           "held only while the dispatch target is missed"};
  if (!asked_.contains(id) || !seen_) return status;
  core::CpuSet cpus;
  for (const auto& [policy, its] : seen_->policies) cpus |= its;
  if (cpus.any()) status.target = "CPUs " + core::cpu_list(cpus);
  if (const auto why = why_not(id); !why.empty()) {
    const bool only_dry = seen_->why_none.empty() && may_ask_others(registrations_, id);
    status.outcome = only_dry ? core::Outcome::dry_run : outcome_of(why);
    status.detail = only_dry ? "would be lowered while the dispatch target is missed" : why;
  } else if (wanted_.contains(id)) {
    const auto applied = std::ranges::all_of(seen_->policies, [&](const auto& item) {
      const auto state = lever_.state(item.first);
      return state && state->outcome == core::Outcome::applied;
    });
    status.outcome = applied ? core::Outcome::applied : core::Outcome::pending;
    status.detail = "only background work is there: what it saves is left to the GPU";
  }
  return status;
}

}  // namespace apusched::app
