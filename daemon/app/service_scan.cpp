// SPDX-License-Identifier: MIT
// The part of app::Service that runs periodically while something is registered.
#include <algorithm>

#include "app/service.hpp"

namespace apusched::app {
namespace {

/// A process works when its threads ran for more than this share of the time since the last scan.
constexpr std::uint64_t kIdleShare = 1000;

}  // namespace

void Service::schedule_scan() {
  if (scan_timer_ != nullptr || registrations_.empty()) return;
  const auto interval = config_.limits.scan_interval;
  const auto now = ports_.loop.now();
  // From deadline to deadline, so that the period does not drift; missed ones are not made up.
  next_scan_ += interval;
  if (next_scan_ <= now) next_scan_ = now + interval;
  const auto delay = std::chrono::duration_cast<std::chrono::microseconds>(next_scan_ - now);
  scan_timer_ = ports_.loop.after(delay, [this] {
    const auto done = std::move(scan_timer_);
    scan();
    schedule_scan();
  });
}

void Service::scan() {
  std::vector<core::RegistrationId> order = ids();
  if (scan_cursor_)
    std::rotate(order.begin(), std::lower_bound(order.begin(), order.end(), *scan_cursor_),
                order.end());
  scan_cursor_.reset();
  std::uint32_t budget = config_.limits.max_threads_per_scan;
  for (const auto id : order) {
    const auto found = registrations_.find(id);
    if (found == registrations_.end()) continue;
    const auto threads = scan_one(found->second);
    if (threads >= budget) {
      scan_cursor_ = core::RegistrationId::make(std::int64_t{id.value()} + 1);
      break;
    }
    budget -= threads;
  }
  std::map<core::PciAddress, bool> worked;
  for (auto& [id, registration] : registrations_) {
    if (registration.gpus.empty()) continue;
    const bool active = note_activity(registration);
    for (const auto& gpu : registration.gpus)
      if (const auto address = core::PciAddress::parse(gpu)) worked[*address] |= active;
  }
  gpu_watch_.update(worked);
  follow_agents();
  control_.follow(registrations_);
}

std::uint32_t Service::scan_one(Registration& registration) {
  scan_children(registration);
  std::uint32_t threads = 0;
  core::Result<NiceSummary> total = NiceSummary{};
  for (auto& [pid, member] : registration.members) {
    const auto result = apply_nice(registration, member);
    threads += member.threads;
    if (!result && result.error().code == core::ErrorCode::gone) continue;  // its pidfd will tell
    if (!result) {
      total = result;
    } else if (total) {
      total->applied += result->applied;
      total->contended += result->contended;
    }
  }
  const auto before = registration.levers;
  if (const auto placement = ports_.processes.placement(registration.key.pid)) {
    // The autogroup we hold stays the one to release, even if the process made a new session.
    auto refreshed = *placement;
    refreshed.autogroup = registration.placement.autogroup;
    registration.placement = refreshed;
  }
  nice_status(registration, total);
  follow_gpus(registration);
  if (observer_ != nullptr && before != registration.levers) observer_->on_changed(registration.id);
  return threads;
}

/// What a process has from another registration, by birth or as a covered child, is no original of
/// its own: gives that back first. True if its nice may have changed.
bool Service::settle_inheritance(const ports::ProcessIdentity& identity) {
  bool changed = thread_nice_.look_for_stragglers(identity.nice);
  for (auto& [id, registration] : registrations_) {
    if (registration.profile.nice != identity.nice) continue;
    if (std::ranges::none_of(registration.members, [&](const auto& member) {
          return member.second.nice.inherited && member.second.nice.since <= identity.key.start;
        }))
      continue;
    scan_children(registration);
    changed = true;
  }
  return take_over(identity.key.pid) || changed;
}

Registration* Service::owner_of(core::Pid pid) {
  for (auto& [id, registration] : registrations_)
    if (registration.members.contains(pid)) return &registration;
  return nullptr;
}

/// A process has one registration, the nearest: takes it out of one that covers it as a child.
bool Service::take_over(core::Pid pid) {
  auto* owner = owner_of(pid);
  if (owner == nullptr) return false;
  auto& registration = *owner;
  const auto member = registration.members.find(pid);
  if (member->second.nice.process == registration.key) return false;
  release_member(registration, member->second, false);
  registration.members.erase(member);
  ports_.loop.soon([this, id = registration.id] {
    const auto left = registrations_.find(id);
    if (left == registrations_.end()) return;
    if (left->second.members.empty())
      static_cast<void>(remove(id, "its last process is registered itself"));
    else if (observer_ != nullptr)
      observer_->on_changed(id);
  });
  return true;
}

void Service::scan_children(Registration& registration) {
  std::vector<core::Pid> waiting;
  for (const auto& [pid, member] : registration.members) waiting.push_back(pid);
  while (!waiting.empty()) {
    const auto parent = waiting.back();
    waiting.pop_back();
    const auto children = ports_.processes.children(parent);
    if (!children) continue;
    for (const auto child : *children) {
      if (registration.members.contains(child) || registration.disinherited.contains(child))
        continue;
      adopt_child(registration, registration.members.at(parent), child);
      if (registration.members.contains(child)) waiting.push_back(child);
    }
  }
}

void Service::adopt_child(Registration& registration, const Member& parent, core::Pid child) {
  const auto& inherited = parent.nice.inherited;
  if (!registration.profile.include_children) {
    if (!registration.profile.nice || !inherited) return;
    if (registration.disinherited.size() >= config_.limits.max_members)
      registration.disinherited.clear();
    registration.disinherited.insert(child);
    const Inheritance inheritance{*registration.profile.nice, *inherited, parent.nice.since};
    thread_nice_.disinherit(child, inheritance);
    thread_nice_.disinherit_descendants(child, inheritance);
    return;
  }
  // At registration the nearest wins; a scan later on takes nothing away from another.
  if (!registrations_.contains(registration.id)) take_over(child);
  if (owner_of(child) != nullptr) return;
  if (member_count() + registration.members.size() >= config_.limits.max_members) return;
  auto handle = ports_.processes.open(child);
  if (!handle) return;
  const auto facts = ports_.processes.facts(child);
  if (!facts || !(*handle)->alive()) return;
  auto member = make_member(std::move(*handle), facts->key, registration.id);
  if (member.exit_watch == nullptr) return;
  // Found at registration: never boosted, reads back its own original. Found later: born of a
  // boosted process, so its original is its parent's.
  member.nice.inherited = inherited;
  auto& added = registration.members.emplace(child, std::move(member)).first->second;
  static_cast<void>(apply_nice(registration, added));
}

bool Service::note_activity(Registration& registration) {
  const auto interval =
      std::chrono::duration_cast<std::chrono::nanoseconds>(config_.limits.scan_interval);
  const auto threshold = static_cast<std::uint64_t>(interval.count()) / kIdleShare;
  std::uint64_t ran = 0;
  for (auto& [pid, member] : registration.members) {
    const auto now = ports_.processes.activity(pid).value_or(member.activity);
    if (now > member.activity) ran += now - member.activity;
    member.activity = now;
  }
  return ran > threshold;
}

}  // namespace apusched::app
