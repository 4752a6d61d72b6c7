// SPDX-License-Identifier: MIT
#include "app/shared_lever.hpp"

#include <algorithm>

namespace apusched::app {
namespace {

using namespace std::chrono_literals;
constexpr auto kFirstRetry = 1000ms;
constexpr auto kLastRetry = 60000ms;

}  // namespace

SharedLever::SharedLever(core::LeverKind kind, LeverBackend& backend, LedgerBook& book,
                         ports::EventLoop& loop, ports::Report& report, bool dry_run)
    : kind_(kind),
      backend_(backend),
      book_(book),
      loop_(loop),
      report_(report),
      dry_run_(dry_run) {}

void SharedLever::hold(const std::string& id, const core::Holding& holding) {
  auto& slot = slots_[id];
  if (const auto* entry = book_.ledger().find(key(id)); entry != nullptr && !dry_run_) {
    if (const auto held = book_.hold({{key(id), holding, entry->original, {}}}); !held)
      return set_state(id, {core::outcome_of(held.error()), core::to_sentence(held.error())});
    return reconcile(id);
  }
  std::erase_if(slot.waiting, [&](const core::Holding& h) { return h.holder == holding.holder; });
  slot.waiting.push_back(holding);
  if (!slot.busy) start_reading(id);
}

void SharedLever::release(const std::string& id, core::RegistrationId holder) {
  const auto found = slots_.find(id);
  if (found == slots_.end()) return;
  std::erase_if(found->second.waiting, [&](const core::Holding& h) { return h.holder == holder; });
  book_.release(key(id), holder);
  reconcile(id);
}

void SharedLever::restore_leftovers() {
  std::vector<std::string> ids;
  for (const auto& [resource, entry] : book_.ledger().entries())
    if (resource.kind == kind_ && entry.holders.empty()) ids.push_back(resource.id);
  for (const auto& id : ids) {
    slots_[id];
    reconcile(id);
  }
}

void SharedLever::observed(const std::string& id, const core::LeverValue& value,
                           std::chrono::steady_clock::time_point asked) {
  const auto found = slots_.find(id);
  const auto* entry = book_.ledger().find(key(id));
  if (found == slots_.end() || found->second.busy || entry == nullptr) return;
  if (entry->contended || !entry->written || *entry->written == value) return;
  if (asked < found->second.written_at) return;
  disown(id, "somebody set it to " + core::to_string(value));
}

void SharedLever::disown(const std::string& id, const std::string& why) {
  const auto found = slots_.find(id);
  const auto* entry = book_.ledger().find(key(id));
  if (found == slots_.end() || found->second.busy || entry == nullptr) return;
  if (entry->contended || !entry->written) return;
  book_.note_contended(key(id));
  set_state(id, {core::Outcome::contended, why + "; left alone"});
}

std::optional<SharedLever::State> SharedLever::state(const std::string& id) const {
  const auto found = slots_.find(id);
  return found == slots_.end() ? std::nullopt : std::optional(found->second.state);
}

bool SharedLever::settled() const {
  return std::ranges::none_of(
      slots_, [](const auto& item) { return item.second.busy || item.second.retry != nullptr; });
}

void SharedLever::start_reading(const std::string& id) {
  auto& slot = slots_[id];
  slot.busy = true;
  slot.retry.reset();
  // While it is tried again, what went wrong is still the news.
  if (slot.retry_delay == 0ms) set_state(id, {core::Outcome::pending, {}});
  backend_.read(id, [this, id](const core::Result<core::LeverValue>& original) {
    original_known(id, original);
  });
}

void SharedLever::original_known(const std::string& id,
                                 const core::Result<core::LeverValue>& original) {
  auto& slot = slots_[id];
  slot.busy = false;
  const auto waiting = std::exchange(slot.waiting, {});
  if (waiting.empty()) return;
  if (!original) {
    set_state(id, {core::outcome_of(original.error()), original.error().detail});
    if (!backend_.is_temporary(original.error())) return;
    slots_[id].waiting = waiting;
    return try_again_later(id);
  }
  slot.retry_delay = 0ms;
  if (const auto reason = backend_.refuse(*original); !reason.empty())
    return set_state(id, {core::Outcome::contended, reason});
  if (dry_run_) return set_state(id, {core::Outcome::dry_run, "would be written"});
  std::vector<LedgerBook::Hold> holds;
  for (const auto& holding : waiting) holds.push_back({key(id), holding, *original, {}});
  if (const auto held = book_.hold(holds); !held)
    return set_state(id, {core::Outcome::failed, core::to_sentence(held.error())});
  if (backend_.leaves_trace(id)) book_.note_drop_in(key(id));
  reconcile(id);
}

void SharedLever::reconcile(const std::string& id) {
  auto& slot = slots_[id];
  if (slot.busy) return;  // looked at again when the answer comes
  const auto* entry = book_.ledger().find(key(id));
  if (entry == nullptr) {
    if (!slot.waiting.empty()) return start_reading(id);
    slots_.erase(id);
    return;
  }
  const bool held = !entry->holders.empty();
  if (entry->contended) {
    if (!held) restored(id);
    return;
  }
  const auto wanted = core::Ledger::wanted(*entry);
  const auto known = entry->written.value_or(entry->original);
  // A crash may have come between intention and write; `write_failed` sorts that out.
  const auto in_force = held ? known : entry->intended.value_or(known);
  if (wanted == in_force) {
    if (!held) return restored(id);
    book_.note_written(key(id), wanted);
    return set_state(id, {core::Outcome::applied, {}});
  }
  write(id, wanted, in_force);
}

void SharedLever::write(const std::string& id, const core::LeverValue& value,
                        const core::LeverValue& expected) {
  auto& slot = slots_[id];
  slot.retry.reset();
  if (const auto intended = book_.intend(key(id), value); !intended)
    return write_failed(id, intended.error());
  slot.busy = true;
  set_state(id, {core::Outcome::pending, {}});
  backend_.write(id, value, expected, [this, id, value](const core::Result<void>& result) {
    written(id, value, result);
  });
}

void SharedLever::written(const std::string& id, const core::LeverValue& value,
                          const core::Result<void>& result) {
  auto& slot = slots_[id];
  slot.busy = false;
  if (!result) return write_failed(id, result.error());
  slot.retry_delay = 0ms;
  slot.written_at = loop_.now();
  book_.note_written(key(id), value);
  reconcile(id);
}

void SharedLever::restored(const std::string& id) {
  const auto* entry = book_.ledger().find(key(id));
  if (entry->contended)
    report_.info(std::string(core::to_string(kind_)) + " of " + id +
                 " was changed by somebody else and is left as it is");
  else if (entry->written)
    report_.restored(std::string(core::to_string(kind_)) + " of " + id,
                     core::to_string(entry->original));
  // systemctl set-property writes the same drop-in: a contended one may be theirs.
  if (entry->drop_in && !entry->contended) backend_.clean_up(id);
  book_.forget({key(id)});
  slots_.erase(id);
  if (changed_) changed_(id);
}

void SharedLever::write_failed(const std::string& id, const core::Error& error) {
  const auto* entry = book_.ledger().find(key(id));
  const bool held = entry != nullptr && !entry->holders.empty();
  if (error.code == core::ErrorCode::gone && !(held && backend_.is_temporary(error))) {
    book_.forget({key(id)});
    set_state(id, {core::Outcome::gone, error.detail});
    if (!held) slots_.erase(id);
    return;
  }
  if (error.code == core::ErrorCode::contended && !held && entry != nullptr && entry->intended) {
    book_.drop_intention(key(id));
    return reconcile(id);
  }
  if (error.code == core::ErrorCode::contended) {
    book_.note_contended(key(id));
    set_state(id, {core::Outcome::contended, error.detail});
    if (!held) reconcile(id);
    return;
  }
  set_state(id, {core::outcome_of(error), error.detail});
  if (held && error.code == core::ErrorCode::unsupported) return;
  try_again_later(id);
  if (!held) report_.warning(core::to_sentence(error) + ", will try again to restore it");
}

/// A value of ours is still in force, or a wish could not be met: less and less often (a GPU in
/// reset answers EPERM until it is back).
void SharedLever::try_again_later(const std::string& id) {
  auto& slot = slots_[id];
  slot.retry_delay =
      std::clamp<std::chrono::milliseconds>(slot.retry_delay * 2, kFirstRetry, kLastRetry);
  slot.retry = loop_.after(slot.retry_delay, [this, id] {
    auto& due = slots_[id];
    const auto done = std::move(due.retry);
    reconcile(id);
  });
}

void SharedLever::set_state(const std::string& id, State state) {
  slots_[id].state = std::move(state);
  if (changed_) changed_(id);
}

}  // namespace apusched::app
