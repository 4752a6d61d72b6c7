// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <vector>

#include "core/ledger.hpp"
#include "ports/ledger_store.hpp"
#include "ports/report.hpp"

namespace apusched::app {

/// The ledger with its store: a record reaches the store before the write it covers.
/// Owner of the ledger. One per daemon, event-loop thread.
class LedgerBook {
 public:
  LedgerBook(ports::LedgerStore& store, ports::Report& report) : store_(store), report_(report) {}

  struct Hold {
    core::ResourceKey key;
    core::Holding holding;
    core::LeverValue original;
    std::optional<core::ProcessKey> process;
  };

  /// Takes over what an earlier run left in the store.
  [[nodiscard]] core::Result<void> load();
  /// Adds holders and records original and intended value. On an error nothing may be written.
  [[nodiscard]] core::Result<void> hold(const std::vector<Hold>& holds);
  /// Records that `value` is about to be written.
  [[nodiscard]] core::Result<void> intend(const core::ResourceKey& key,
                                          const core::LeverValue& value);
  void release(const core::ResourceKey& key, core::RegistrationId holder);
  void note_written(const core::ResourceKey& key, const core::LeverValue& value);
  void note_contended(const core::ResourceKey& key);
  void drop_intention(const core::ResourceKey& key);
  void note_drop_in(const core::ResourceKey& key);
  void forget(const std::vector<core::ResourceKey>& keys);

  [[nodiscard]] const core::Ledger& ledger() const { return ledger_; }

 private:
  ports::LedgerStore& store_;
  ports::Report& report_;
  core::Ledger ledger_;
};

}  // namespace apusched::app
