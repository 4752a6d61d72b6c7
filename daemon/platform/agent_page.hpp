// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "agent/abi.hpp"
#include "core/agent.hpp"
#include "core/result.hpp"

namespace apusched::platform {

/// What stands in an agent's Hello, but for the process: that is known from the socket. The error's
/// code is `unsupported` for another version of the protocol, else `invalid_input`.
[[nodiscard]] core::Result<core::AgentFacts> parse_hello(std::span<const std::byte> bytes,
                                                         const core::ProcessKey& process);

/// The settings in the form of the control page; `sequence` is left 0. GPUs that the agent did not
/// name are left out.
[[nodiscard]] agent_abi::Control to_control(const core::AgentSettings& settings,
                                            const std::vector<core::AgentGpu>& gpus);

/// Copies `control` into the page that the agent maps, so that a reader sees all of it or none.
void publish(agent_abi::Control& page, const agent_abi::Control& control, std::uint32_t sequence);

/// A copy of a page that another process may be writing; nothing where it does not hold still.
[[nodiscard]] std::optional<agent_abi::Telemetry> snapshot(const agent_abi::Telemetry& page);

/// Checks what one agent reports against the protocol and against what it reported before.
class ReportChecker {
 public:
  enum class Verdict { good, unchanged, senseless };
  explicit ReportChecker(std::size_t gpu_count) : gpu_count_(gpu_count) {}

  /// `newest_settings`: the sequence that was published last.
  [[nodiscard]] Verdict check(const agent_abi::Telemetry& telemetry, std::uint32_t newest_settings);
  /// The last good one.
  [[nodiscard]] const std::optional<core::AgentReport>& report() const { return report_; }

 private:
  [[nodiscard]] bool well_formed(const agent_abi::Telemetry& t, std::uint32_t newest) const;
  [[nodiscard]] bool goes_on(const agent_abi::Telemetry& t) const;
  [[nodiscard]] bool waits_make_sense(const agent_abi::Telemetry& t) const;

  std::size_t gpu_count_;
  std::uint32_t sequence_ = 0;
  std::optional<core::AgentReport> report_;
};

}  // namespace apusched::platform
