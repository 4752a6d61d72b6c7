// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>

#include "platform/unique_fd.hpp"
#include "ports/ledger_store.hpp"

namespace apusched::platform {

/// LedgerStore as an append-only file `ledger` in the runtime directory (tmpfs). Holds the
/// directory's lock for its whole life: two writers would undo each other's originals.
class FileLedgerStore final : public ports::LedgerStore {
 public:
  /// `contended` where another process holds the directory.
  [[nodiscard]] static core::Result<std::unique_ptr<FileLedgerStore>> open(
      const std::string& runtime_dir);

  core::Result<core::Ledger> load() override;
  core::Result<void> put(const core::ResourceKey& key, const core::LedgerEntry& entry) override;
  core::Result<void> put_all(
      const std::vector<std::pair<core::ResourceKey, core::LedgerEntry>>& records) override;
  core::Result<void> erase(const std::vector<core::ResourceKey>& keys) override;

 private:
  FileLedgerStore(std::string path, UniqueFd lock, UniqueFd file);
  [[nodiscard]] core::Result<void> append(const std::string& lines);
  /// One system call where a rewrite takes four: most of the time the last thread released
  /// empties the ledger.
  [[nodiscard]] core::Result<void> cut_to_header();
  [[nodiscard]] core::Result<void> rewrite();

  std::string path_;
  UniqueFd lock_;
  UniqueFd file_;
  core::Ledger mirror_;  ///< what the file says; basis of a rewrite
  std::size_t file_bytes_ = 0;
  std::size_t header_bytes_ = 0;  ///< 0 until the first rewrite
};

}  // namespace apusched::platform
