// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/ledger.hpp"

/// Text form of the ledger: one JSON object a line, so that a record can be appended with one
/// write and a torn last line costs that record alone.
namespace apusched::platform {

struct LedgerHeader {
  std::string boot_id;
};
struct LedgerPut {
  core::ResourceKey key;
  core::LedgerEntry entry;  ///< holders are not kept: they end with the daemon
};
struct LedgerErase {
  core::ResourceKey key;
};
using LedgerLine = std::variant<LedgerHeader, LedgerPut, LedgerErase>;

[[nodiscard]] std::string format_line(const LedgerLine& line);
/// No value for anything malformed, of another version, or out of range.
[[nodiscard]] std::optional<LedgerLine> parse_line(std::string_view text);

}  // namespace apusched::platform
