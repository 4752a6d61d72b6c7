// SPDX-License-Identifier: MIT
#include "agent/queue_registry.hpp"

#include <algorithm>

namespace apusched::agent {

Indices read_indices(const Runtime& runtime, const hsa_queue_t* queue) noexcept {
  // In this order, so that a packet that is both submitted and taken in between is no negative
  // backlog.
  const std::uint64_t taken = runtime.load_read_index(queue);
  const std::uint64_t written = runtime.load_write_index(queue);
  return {written, std::min(taken, written)};
}

bool QueueRegistry::reserve(std::uint32_t limit) noexcept {
  const std::lock_guard lock(mutex_);
  if (limit != 0 && counted_ >= limit) {
    refused_++;
    return false;
  }
  counted_++;
  return true;
}

void QueueRegistry::give_up() noexcept {
  const std::lock_guard lock(mutex_);
  if (counted_ > 0) counted_--;
}

void QueueRegistry::add(const QueueFacts& facts) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    Entry& entry = entries_[facts.handle];
    entry = {};
    entry.view.facts = facts;
  } catch (...) {
    if (counted_ > 0) counted_--;
  }
}

void QueueRegistry::add_shared(const QueueFacts& facts) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    const auto [found, is_new] = entries_.try_emplace(facts.handle);
    if (!is_new) {
      found->second.users++;
      return;
    }
    found->second.view.facts = facts;
    counted_++;
  } catch (...) {
    return;
  }
}

QueueRegistry::Entries::iterator QueueRegistry::wait_until_free(
    const hsa_queue_t* queue, std::unique_lock<std::mutex>& lock) {
  auto found = entries_.end();
  // Looked up anew each time: it may be another queue by then, or none.
  freed_.wait(lock, [&] {
    found = entries_.find(queue);
    return found == entries_.end() || found->second.holder == std::thread::id{} ||
           found->second.holder == std::this_thread::get_id();
  });
  return found;
}

std::optional<QueueView> QueueRegistry::take(hsa_queue_t* queue, const Runtime& runtime) noexcept {
  std::unique_lock lock(mutex_);
  const auto found = wait_until_free(queue, lock);
  if (found == entries_.end() || found->second.holder != std::thread::id{}) return std::nullopt;
  if (--found->second.users > 0) return std::nullopt;
  QueueView view = found->second.view;
  view.indices = read_indices(runtime, queue);
  destroyed_.written += view.indices.written;
  destroyed_.taken += view.indices.taken;
  entries_.erase(found);
  if (counted_ > 0) counted_--;
  return view;
}

void QueueRegistry::put_back(const QueueView& queue) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    entries_[queue.facts.handle].view = queue;
  } catch (...) {
    return;
  }
  counted_++;
  destroyed_.written -= queue.indices.written;
  destroyed_.taken -= queue.indices.taken;
}

bool QueueRegistry::begin(const hsa_queue_t* queue, QueueFacts* facts,
                          QueueLevers* levers) noexcept {
  std::unique_lock lock(mutex_);
  const auto found = wait_until_free(queue, lock);
  if (found == entries_.end() || found->second.holder != std::thread::id{} ||
      found->second.view.facts.left_alone)
    return false;
  found->second.holder = std::this_thread::get_id();
  *facts = found->second.view.facts;
  *levers = found->second.view.levers;
  return true;
}

void QueueRegistry::end(const hsa_queue_t* queue, const QueueLevers& levers) noexcept {
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(queue);
    if (found == entries_.end()) return;
    found->second.view.levers = levers;
    found->second.holder = {};
  }
  freed_.notify_all();
}

void QueueRegistry::list(std::vector<hsa_queue_t*>* handles) const noexcept {
  const std::lock_guard lock(mutex_);
  handles->clear();
  try {
    for (const auto& [queue, entry] : entries_) handles->push_back(entry.view.facts.handle);
  } catch (...) {
    return;  // the rest at the next turn
  }
}

std::optional<QueueView> QueueRegistry::find(const hsa_queue_t* queue) const noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(queue);
  if (found == entries_.end()) return std::nullopt;
  return found->second.view;
}

Indices QueueRegistry::look(const Runtime& runtime, std::vector<QueueView>* views) noexcept {
  const std::lock_guard lock(mutex_);
  views->clear();
  try {
    for (auto& [queue, entry] : entries_) {
      entry.view.indices = read_indices(runtime, queue);
      views->push_back(entry.view);
    }
  } catch (...) {
    // no memory: a shorter report
  }
  return destroyed_;
}

std::optional<Indices> QueueRegistry::look(const Runtime& runtime, const hsa_queue_t* queue,
                                           std::uint64_t id) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(queue);
  if (found == entries_.end() || found->second.view.facts.id != id) return std::nullopt;
  return read_indices(runtime, queue);
}

std::uint64_t QueueRegistry::refused() const noexcept {
  const std::lock_guard lock(mutex_);
  return refused_;
}

void QueueRegistry::reset() noexcept {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  counted_ = 0;
  destroyed_ = {};
  refused_ = 0;
}

}  // namespace apusched::agent
