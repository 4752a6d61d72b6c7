// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>

#include "core/result.hpp"

namespace apusched::platform {

/// Reads a /proc or /sys text of at most `limit` bytes; a longer one is cut there.
[[nodiscard]] core::Result<std::string> read_small_file(const std::string& path,
                                                        std::size_t limit = 4096);
/// One write(2), as procfs and sysfs want it.
[[nodiscard]] core::Result<void> write_small_file(const std::string& path, const std::string& text);

}  // namespace apusched::platform
