// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/exit_code.hpp"

namespace apusched::ctl {

using Environment = std::map<std::string, std::string>;
using Lookup = std::function<std::optional<std::string_view>(const std::string& name)>;

struct LaunchPlan {
  Environment set;
  std::vector<std::string> notes;  ///< sentences: what was there and is kept
  bool operator==(const LaunchPlan&) const = default;
};

/// What to set of `wanted`, where a variable that somebody set already is kept as it is. Two are
/// not simply kept: the tools in HSA_TOOLS_LIB are loaded together, the agent last; and
/// HSA_CU_MASK numbers GPUs as the program sees them, so it is left out where
/// ROCR_VISIBLE_DEVICES hides some.
[[nodiscard]] LaunchPlan plan_launch(const Environment& wanted, const Lookup& existing);

/// Replaces this process by `command`, found by PATH. Answers only where that failed.
[[nodiscard]] Failure launch(const std::vector<std::string>& command, const Environment& set);

/// Does nothing for so long.
void pause(std::chrono::milliseconds time);

}  // namespace apusched::ctl
