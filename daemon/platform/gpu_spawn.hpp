// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "core/types.hpp"
#include "platform/unique_fd.hpp"

namespace apusched::platform {

struct HelperSpawn {
  std::string program;  ///< absolute path of apusched-gpu-helper, or a test's wrapper
  core::PciAddress gpu;
  std::string sysfs_root = "/sys";
  std::string user = "apusched-gpu";  ///< the helper runs as this user when we are root
};

/// A helper process between fork and, if all goes well, exec. Not waited for here.
struct SpawnedHelper {
  int pid = 0;  ///< leader of its own session and process group
  UniqueFd socket;
  /// Ends (EOF) at exec or death; carries SpawnNotes of the steps that failed before.
  UniqueFd notes;
  /// What was amiss before the fork: a missing user, a missing group.
  std::vector<std::string> reasons;
};

/// One failed step of the child, as it travels through the pipe.
struct SpawnNote {
  std::uint32_t step = 0;
  std::int32_t error = 0;
};

/// Starts the helper: own session, every descriptor closed but its socket (3) and stderr, an
/// environment of PATH only, no core dumps, no new privileges. As root also: private mount
/// namespace with an own tmpfs on /dev/shm (rocm-smi's mutex), own network and IPC namespace, and
/// the unprivileged user with the groups render and video. A failed namespace is noted and gone
/// without (no rocm-smi where /dev/shm is shared); a failed change of user ends the child.
[[nodiscard]] core::Result<SpawnedHelper> spawn_helper(const HelperSpawn& spawn);

/// "cannot ...: Operation not permitted" for each whole note in `bytes`; at most 16.
[[nodiscard]] std::vector<std::string> describe_spawn_notes(std::span<const std::byte> bytes);

}  // namespace apusched::platform
