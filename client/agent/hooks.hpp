// SPDX-License-Identifier: MIT
#pragma once

#include "agent/host.hpp"

namespace apusched::agent {

/// The agent's entries in the runtime's tables. Both are called by OnLoad and OnUnload only, which
/// the runtime never calls at the same time.
///
/// `host`, with its runtime and tables set, outlives everything.
void install_hooks(Host& host) noexcept;
/// Puts back what is still ours: what another tool has put over it calls our entry, which goes on
/// to pass everything to the runtime.
void remove_hooks() noexcept;

}  // namespace apusched::agent
