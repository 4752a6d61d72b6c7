// SPDX-License-Identifier: MIT
#pragma once

#include "core/ledger.hpp"
#include "core/result.hpp"

namespace apusched::ports {

/// Keeps the ledger where it survives the daemon but not a reboot (tmpfs). `put` returns only
/// when the record would survive a crash of this process; it comes before the write it covers.
class LedgerStore {
 public:
  virtual ~LedgerStore() = default;
  [[nodiscard]] virtual core::Result<core::Ledger> load() = 0;
  [[nodiscard]] virtual core::Result<void> put(const core::ResourceKey& key,
                                               const core::LedgerEntry& entry) = 0;
  /// Several records in one write.
  [[nodiscard]] virtual core::Result<void> put_all(
      const std::vector<std::pair<core::ResourceKey, core::LedgerEntry>>& records) = 0;
  [[nodiscard]] virtual core::Result<void> erase(const std::vector<core::ResourceKey>& keys) = 0;
};

}  // namespace apusched::ports
