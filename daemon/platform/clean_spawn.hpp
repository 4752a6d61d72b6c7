// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"

namespace apusched::platform {

/// `ours` becomes `its` in the child. `its` counts on from 1 or 3 without gaps.
struct GivenFd {
  int ours = -1;
  int its = -1;
};

/// Starts the program words[0] (an absolute path): own process group, PATH as its only variable,
/// default signals, stdin from nowhere, stderr ours, no descriptor but those given. Its PID; the
/// caller reaps it. `failed` where it cannot be started: it is a part of this installation.
[[nodiscard]] core::Result<int> spawn_clean(std::vector<std::string> words,
                                            const std::vector<GivenFd>& given);

}  // namespace apusched::platform
