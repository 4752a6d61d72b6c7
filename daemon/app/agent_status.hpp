// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "app/registration.hpp"
#include "core/agent.hpp"
#include "core/lever.hpp"

namespace apusched::app {

/// Why a registration has no agent, and what to do about it.
[[nodiscard]] std::string why_no_agent(const Registration& registration);

struct AgentVerdict {
  core::Outcome outcome = core::Outcome::pending;
  std::string detail;
};
/// What one agent made of one setting; `report` is nothing until the settings are in force there.
[[nodiscard]] AgentVerdict judge_agent(core::LeverKind kind, const core::AgentFacts& facts,
                                       const std::optional<core::AgentReport>& report);

/// Whether `a` says more about what is wrong than `b`.
[[nodiscard]] bool worse(core::Outcome a, core::Outcome b);

}  // namespace apusched::app
