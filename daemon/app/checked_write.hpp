// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "core/result.hpp"

namespace apusched::app {

/// Writes where `expected` is in force (else `contended`) and reads back; where `value` is in force
/// already there is nothing to write. `read` gives a Result of the value, `write` one of nothing.
template <typename Value, typename Read, typename Write>
core::Result<void> checked_write(const std::string& what, const std::string& target,
                                 const Value& value, const Value& expected, Read read,
                                 Write write) {
  const auto found = read();
  if (!found) return tl::unexpected(found.error());
  if (*found == value) return {};
  if (*found != expected)
    return core::fail(core::ErrorCode::contended, what, target,
                      "somebody set it to " + core::to_string(*found) + "; left alone");
  if (auto done = write(); !done) return done;
  const auto back = read();
  if (!back) return tl::unexpected(back.error());
  if (*back != value)
    return core::fail(core::ErrorCode::failed, what, target,
                      "reads back " + core::to_string(*back));
  return {};
}

}  // namespace apusched::app
