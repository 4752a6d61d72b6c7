// SPDX-License-Identifier: MIT
#include "app/ledger_book.hpp"

namespace apusched::app {

core::Result<void> LedgerBook::load() {
  auto loaded = store_.load();
  if (!loaded) return tl::unexpected(loaded.error());
  ledger_ = std::move(*loaded);
  return {};
}

core::Result<void> LedgerBook::hold(const std::vector<Hold>& holds) {
  std::vector<std::pair<core::ResourceKey, core::LedgerEntry>> records;
  records.reserve(holds.size());
  for (const auto& hold : holds) {
    ledger_.hold(hold.key, hold.holding, hold.original);
    if (hold.process) ledger_.note_process(hold.key, *hold.process);
    const auto* entry = ledger_.find(hold.key);
    const auto wanted = core::Ledger::wanted(*entry);
    if (!entry->contended && entry->written != wanted) ledger_.note_intended(hold.key, wanted);
    records.emplace_back(hold.key, *entry);
  }
  auto stored = store_.put_all(records);
  if (!stored) {
    for (const auto& hold : holds) {
      ledger_.release(hold.key, hold.holding.holder);
      if (ledger_.find(hold.key)->holders.empty()) ledger_.forget(hold.key);
    }
  }
  return stored;
}

core::Result<void> LedgerBook::intend(const core::ResourceKey& key, const core::LeverValue& value) {
  const auto* entry = ledger_.find(key);
  if (entry == nullptr) return {};
  // On the way back the record must go on saying what is to be undone.
  if (entry->holders.empty()) return {};
  ledger_.note_intended(key, value);
  return store_.put(key, *entry);
}

void LedgerBook::release(const core::ResourceKey& key, core::RegistrationId holder) {
  ledger_.release(key, holder);
}

void LedgerBook::note_written(const core::ResourceKey& key, const core::LeverValue& value) {
  ledger_.note_written(key, value);
}

void LedgerBook::note_contended(const core::ResourceKey& key) {
  ledger_.note_contended(key);
  if (const auto* entry = ledger_.find(key))
    if (const auto done = store_.put(key, *entry); !done)
      report_.warning(core::to_sentence(done.error()) +
                      ", a crash would restore a value that is no longer ours");
}

void LedgerBook::drop_intention(const core::ResourceKey& key) {
  ledger_.drop_intention(key);
}

void LedgerBook::note_drop_in(const core::ResourceKey& key) {
  ledger_.note_drop_in(key);
}

void LedgerBook::forget(const std::vector<core::ResourceKey>& keys) {
  if (keys.empty()) return;
  for (const auto& key : keys) ledger_.forget(key);
  if (const auto done = store_.erase(keys); !done)
    report_.warning(core::to_sentence(done.error()) +
                    ", a crash would restore these values once more");
}

}  // namespace apusched::app
