// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "agent/abi.hpp"
#include "agent/masks.hpp"

namespace apusched::agent {

using Nanoseconds = std::chrono::nanoseconds;  ///< of CLOCK_MONOTONIC where it is a moment

/// What is asked of the agent, checked.
struct Settings {
  std::uint32_t sample_hz = 0;
  agent_abi::Priority priority = agent_abi::Priority::leave;
  bool serial = false;
  std::uint32_t queue_limit = 0;         ///< 0: none
  std::uint64_t memory_limit_bytes = 0;  ///< 0: none
  Nanoseconds gate_closed_until{0};
  std::array<CuMask, agent_abi::kMaxGpus> masks{};
};

/// Nothing where a field is out of range: the page is then not what this code thinks it is.
[[nodiscard]] std::optional<Settings> settings_from(const agent_abi::Control& page) noexcept;

/// From the environment of the host program, which a program with more rights than its caller does
/// not look at (secure_getenv). What is no number in range counts as not set.
struct Environment {
  std::string socket;
  std::chrono::milliseconds first_queue_wait{100};
  Settings settings;  ///< in force while no control page says otherwise
};
[[nodiscard]] Environment read_environment();

[[nodiscard]] Nanoseconds monotonic_now() noexcept;

}  // namespace apusched::agent
