// SPDX-License-Identifier: MIT
#include "core/ledger.hpp"

#include <algorithm>

namespace apusched::core {

ResourceKey thread_resource(LeverKind kind, const ThreadKey& thread) {
  return {kind, to_string(thread.tid) + ":" + std::to_string(thread.start.ticks)};
}

std::optional<ThreadKey> resource_thread(const ResourceKey& key) {
  if (key.kind != LeverKind::nice && key.kind != LeverKind::scheduling &&
      key.kind != LeverKind::io_class && key.kind != LeverKind::timer_slack)
    return std::nullopt;
  const auto colon = key.id.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto tid = Tid::parse(std::string_view(key.id).substr(0, colon));
  const auto start = parse_integer(std::string_view(key.id).substr(colon + 1));
  if (!tid || !start || *start < 0) return std::nullopt;
  return ThreadKey{*tid, StartTime{static_cast<std::uint64_t>(*start)}};
}

LeverValue Ledger::wanted(const LedgerEntry& entry) {
  if (entry.holders.empty()) return entry.original;
  // Two wishes for the same resource: the one that favours its holder more wins, so that a
  // background process never holds back a critical one in the same unit or session.
  return std::ranges::max_element(
             entry.holders,
             [](const Holding& a, const Holding& b) { return favours_more(b.wish, a.wish); })
      ->wish;
}

LedgerStep Ledger::hold(const ResourceKey& key, const Holding& holding,
                        const LeverValue& original) {
  auto& entry =
      entries_.try_emplace(key, LedgerEntry{original, {}, {}, {}, false, {}, false}).first->second;
  const auto mine = std::ranges::find(entry.holders, holding.holder, &Holding::holder);
  if (mine == entry.holders.end())
    entry.holders.push_back(holding);
  else
    mine->wish = holding.wish;
  if (entry.contended) return {};
  const auto value = wanted(entry);
  if (entry.written == value) return {};
  return {value, false};
}

LedgerStep Ledger::release(const ResourceKey& key, RegistrationId holder) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return {};
  auto& entry = found->second;
  const auto removed =
      std::erase_if(entry.holders, [&](const Holding& h) { return h.holder == holder; });
  if (removed == 0) return {};
  if (entry.holders.empty()) {
    const bool ours = entry.written && !entry.contended;
    return {ours ? std::optional(entry.original) : std::nullopt, true};
  }
  const auto value = wanted(entry);
  if (entry.contended || entry.written == value) return {};
  return {value, false};
}

void Ledger::note_intended(const ResourceKey& key, const LeverValue& value) {
  if (const auto found = entries_.find(key); found != entries_.end())
    found->second.intended = value;
}

void Ledger::note_written(const ResourceKey& key, const LeverValue& value) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  found->second.written = value;
  found->second.intended.reset();
}

void Ledger::drop_intention(const ResourceKey& key) {
  if (const auto found = entries_.find(key); found != entries_.end())
    found->second.intended.reset();
}

void Ledger::note_contended(const ResourceKey& key) {
  if (const auto found = entries_.find(key); found != entries_.end())
    found->second.contended = true;
}

void Ledger::note_process(const ResourceKey& key, const ProcessKey& process) {
  if (const auto found = entries_.find(key); found != entries_.end())
    found->second.process = process;
}

void Ledger::note_drop_in(const ResourceKey& key) {
  if (const auto found = entries_.find(key); found != entries_.end()) found->second.drop_in = true;
}

void Ledger::forget(const ResourceKey& key) {
  entries_.erase(key);
}

void Ledger::adopt(const ResourceKey& key, LedgerEntry entry) {
  entries_.insert_or_assign(key, std::move(entry));
}

const LedgerEntry* Ledger::find(const ResourceKey& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

std::vector<ResourceKey> Ledger::held_by(RegistrationId holder) const {
  std::vector<ResourceKey> keys;
  for (const auto& [key, entry] : entries_)
    if (std::ranges::find(entry.holders, holder, &Holding::holder) != entry.holders.end())
      keys.push_back(key);
  return keys;
}

}  // namespace apusched::core
