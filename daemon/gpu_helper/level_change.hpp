// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "core/result.hpp"
#include "core/types.hpp"

namespace apusched::gpu_helper {

struct LevelTarget {
  std::string sysfs_root = "/sys";
  core::PciAddress gpu;
};

/// The level in force. A text that is no level is `failed` and shown.
[[nodiscard]] core::Result<core::PerformanceLevel> read_level(const LevelTarget& target);

struct LevelChange {
  core::PerformanceLevel level;
  core::PerformanceLevel expected;  ///< anything else in force is `contended`: someone else's
  bool dry_run = false;             ///< all checks, no write; answers `level`
};
/// Writes power_dpm_force_performance_level and reads it back. A level already in force is
/// success without a write. May block in the kernel while the GPU resets.
[[nodiscard]] core::Result<core::PerformanceLevel> change_level(const LevelTarget& target,
                                                                const LevelChange& change);

}  // namespace apusched::gpu_helper
