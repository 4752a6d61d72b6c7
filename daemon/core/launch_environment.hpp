// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "core/cu_plan.hpp"

namespace apusched::core {

struct LaunchOptions {
  bool agent = true;
  std::string agent_library;     ///< its path
  std::string agent_socket;      ///< empty: the agent's own default
  std::vector<CuGeometry> gpus;  ///< in the runtime's order, which is the KFD topology's
};

/// The environment with which a program gets those settings of a profile that act only at the start
/// of the runtime or at the making of a queue. With an agent these are the agent's own variables;
/// without one, what the HSA runtime and HIP themselves take:
///   GPU_MAX_HW_QUEUES       queue limit: HIP shares so many queues between its streams
///   AMD_SERIALIZE_KERNEL=3  serial: HIP waits before and after each kernel
///   HSA_CU_MASK             CU limit, "GPU:first-last" for each GPU, balanced over its engines
/// Nothing else is ever set; HSA_OVERRIDE_GFX_VERSION least of all.
[[nodiscard]] std::map<std::string, std::string> launch_environment(const Profile& profile,
                                                                    const LaunchOptions& options);

}  // namespace apusched::core
