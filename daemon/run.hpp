// SPDX-License-Identifier: MIT
#pragma once

#include "options.hpp"

namespace apusched {

/// Wires the layers together and runs until stopped. Returns the exit code.
[[nodiscard]] int run_daemon(const Options& options);

}  // namespace apusched
