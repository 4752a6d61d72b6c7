// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include "core/result.hpp"
#include "core/types.hpp"

/// The one line that apusched-gpu-write prints, and its exit code. Pure; used by both sides.
namespace apusched::gpu_helper {

/// Exit codes of apusched-gpu-write (2 is also wrong usage, without a line).
enum class WriterExit : int {
  ok = 0,
  usage = 2,
  contended = 3,    ///< the level in force is not the one expected
  denied = 4,       ///< no right, or the GPU is being reset or suspended
  unsupported = 5,  ///< the GPU does not take this level (EINVAL)
  gone = 6,         ///< no such GPU, or it has no such file
  failed = 7,
  timed_out = 8,
};
[[nodiscard]] WriterExit exit_of(core::ErrorCode code);

/// "level=high" or "error=denied write 0000:04:00.0: ..."; no newline, printable ASCII.
[[nodiscard]] std::string format_level_line(const core::Result<core::PerformanceLevel>& result);
/// The opposite; one trailing newline allowed. Anything else is a `failed` that shows the text.
[[nodiscard]] core::Result<core::PerformanceLevel> parse_level_line(std::string_view line,
                                                                    const core::PciAddress& gpu);

}  // namespace apusched::gpu_helper
