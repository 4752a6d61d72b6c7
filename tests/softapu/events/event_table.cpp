// SPDX-License-Identifier: MIT
#include "events/event_table.h"

#include <algorithm>

namespace apusched::softapu {

void EventTable::signal(std::uint32_t id, Event& event) {
  event.set = !event.auto_reset;
  event.age++;
  deliver(id, event);
}

void EventTable::deliver(std::uint32_t id, Event& event) {
  for (Waiter* waiter : event.waiters) {
    waiter->pending[id] = false;
    event.seen[waiter->thread] = event.age;
    waiter->changed.notify_one();
  }
}

bool EventTable::take(Event& event, std::thread::id thread) {
  if (!event.auto_reset) return event.set;
  std::uint64_t& seen = event.seen[thread];
  if (event.age <= std::max(seen, event.gone)) return false;
  seen = event.age;
  return true;
}

std::uint32_t EventTable::create(bool auto_reset, std::uint32_t type) {
  const std::lock_guard lock(mutex_);
  std::uint32_t id = 1;
  for (const auto& [used, event] : events_) {
    if (used != id) break;
    id++;
  }
  if (id >= kLimit) return 0;
  events_[id].auto_reset = auto_reset;
  events_[id].type = type;
  return id;
}

bool EventTable::destroy(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  const auto it = events_.find(id);
  if (it == events_.end()) return false;
  deliver(id, it->second);
  events_.erase(it);
  return true;
}

bool EventTable::set(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  const auto it = events_.find(id);
  if (it == events_.end()) return false;
  signal(id, it->second);
  return true;
}

void EventTable::raise(std::uint32_t type) {
  const std::lock_guard lock(mutex_);
  for (auto& [id, event] : events_)
    if (event.type == type) signal(id, event);
}

bool EventTable::is_of_type(std::uint32_t id, std::uint32_t type) {
  const std::lock_guard lock(mutex_);
  const auto it = events_.find(id);
  return it != events_.end() && it->second.type == type;
}

bool EventTable::reset(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  const auto it = events_.find(id);
  if (it == events_.end()) return false;
  it->second.set = false;
  it->second.gone = it->second.age;
  return true;
}

void EventTable::clear() {
  const std::lock_guard lock(mutex_);
  for (auto& [id, event] : events_) deliver(id, event);
  events_.clear();
}

template <class Condition>
void EventTable::sleep(std::unique_lock<std::mutex>& lock, Waiter& waiter,
                       std::chrono::milliseconds timeout, Condition done) {
  for (const auto& [id, pending] : waiter.pending)
    if (pending) events_[id].waiters.push_back(&waiter);
  if (timeout == kForever)
    waiter.changed.wait(lock, done);
  else
    waiter.changed.wait_for(lock, timeout, done);
  for (const auto& [id, pending] : waiter.pending)
    if (const auto it = events_.find(id); it != events_.end())
      std::erase(it->second.waiters, &waiter);
}

WaitResult EventTable::wait(std::span<const std::uint32_t> ids, bool all,
                            std::chrono::milliseconds timeout, std::vector<std::uint32_t>* which) {
  std::unique_lock lock(mutex_);
  Waiter waiter;
  for (const std::uint32_t id : ids) {
    if (!events_.contains(id)) return WaitResult::invalid;
    waiter.pending[id] = true;
  }
  for (auto& [id, pending] : waiter.pending) pending = !take(events_[id], waiter.thread);
  const auto done = [&] {
    const auto still = std::count_if(waiter.pending.begin(), waiter.pending.end(),
                                     [](const auto& entry) { return entry.second; });
    return all ? still == 0 : static_cast<std::size_t>(still) < waiter.pending.size();
  };
  if (!done()) sleep(lock, waiter, timeout, done);
  for (const auto& [id, pending] : waiter.pending)
    if (!pending && which != nullptr) which->push_back(id);
  return done() ? WaitResult::signalled : WaitResult::timeout;
}

}  // namespace apusched::softapu
