// SPDX-License-Identifier: MIT
// The part of app::Service that runs periodically while something is registered.
#include <algorithm>

#include "app/service.hpp"

namespace apusched::app {
namespace {

constexpr std::uint32_t kMostRests = 20;
/// Looked at in one scan, of those in which something can have changed: about 0.1 ms each. With
/// more the scan of each becomes rarer.
constexpr std::uint32_t kLooksPerScan = 128;

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
  std::uint32_t looks = 0;
  for (const auto id : order) {
    const auto found = registrations_.find(id);
    if (found == registrations_.end()) continue;
    const auto looked = scan_one(found->second);
    looks += looked.processes;
    if (looked.threads >= budget || looks >= kLooksPerScan) {
      scan_cursor_ = core::RegistrationId::make(std::int64_t{id.value()} + 1);
      break;
    }
    budget -= looked.threads;
  }
  std::map<core::PciAddress, bool> worked;
  for (auto& [id, registration] : registrations_)
    for (const auto& gpu : registration.gpus)
      if (const auto address = core::PciAddress::parse(gpu))
        worked[*address] |= works(registration, config_.limits);
  gpu_watch_.update(worked);
  hold_back_.follow();
  background_energy_.follow();
  follow_levels();
  follow_agents();
}

/// Looks at those of its processes in which something can have changed.
Service::Looked Service::scan_one(Registration& registration) {
  Looked looked;
  std::vector<core::Pid> stirred;
  for (auto& [pid, member] : registration.members)
    if (has_stirred(member)) stirred.push_back(pid);
  for (const auto& [pid, member] : registration.members) looked.threads += member.threads;
  if (stirred.empty()) return looked;
  looked.processes = static_cast<std::uint32_t>(stirred.size());
  scan_children(registration, stirred);
  for (auto& [pid, member] : registration.members)
    if (std::ranges::find(stirred, pid) != stirred.end()) look_at_threads(registration, member);
  const auto before = registration.levers;
  if (const auto placement = ports_.processes.placement(registration.key.pid)) {
    // The autogroup we hold stays the one to release, even if the process made a new session.
    auto refreshed = *placement;
    refreshed.autogroup = registration.placement.autogroup;
    registration.placement = refreshed;
  }
  threads_status(registration);
  follow_gpus(registration);
  control_.begin(registration);
  if (observer_ != nullptr && before != registration.levers) observer_->on_changed(registration.id);
  return looked;
}

/// Only who has run can have new threads, children or queues. What others do to a process that
/// sleeps is seen at each kMostRests-th scan.
bool Service::has_stirred(Member& member) {
  const auto now = ports_.processes.activity(member.nice.process.pid).value_or(member.activity);
  member.ran = now > member.activity ? now - member.activity : 0;
  member.activity = now;
  if (member.looked_at == now && ++member.rests < kMostRests) return false;
  member.looked_at = now;
  member.rests = 0;
  return true;
}

/// What a process has from another registration, by birth or as a covered child, is no original of
/// its own: gives that back first. True if its nice may have changed.
bool Service::settle_inheritance(const ports::ProcessIdentity& identity) {
  const ports::ThreadFacts main{{*core::Tid::make(identity.key.pid.value()), identity.key.start},
                                identity.nice};
  bool changed = false;
  for (const auto& part : thread_parts()) changed |= part.lever.look_for_stragglers(main);
  const auto may_be_of = [&](const Member& member) {
    return std::ranges::any_of(thread_parts(), [&](const ThreadPart& part) {
      const auto& state = member.*part.state;
      return state.since <= identity.key.start && part.lever.is_one_of(main, state.ours);
    });
  };
  for (auto& [id, registration] : registrations_) {
    if (std::ranges::none_of(registration.members,
                             [&](const auto& item) { return may_be_of(item.second); }))
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
  std::vector<core::Pid> all;
  for (const auto& [pid, member] : registration.members) all.push_back(pid);
  scan_children(registration, std::move(all));
}

void Service::scan_children(Registration& registration, std::vector<core::Pid> waiting) {
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
  if (!registration.profile.include_children) return disinherit(registration, parent, child);
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
  for (const auto& part : thread_parts()) {
    (member.*part.state).inherited = (parent.*part.state).inherited;
    (member.*part.state).ours = (parent.*part.state).ours;
  }
  auto& added = registration.members.emplace(child, std::move(member)).first->second;
  look_at_threads(registration, added);
}

}  // namespace apusched::app
