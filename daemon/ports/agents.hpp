// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>

#include "core/agent.hpp"
#include "core/result.hpp"

namespace apusched::ports {

/// The agents that are connected. Event-loop thread.
class AgentHub {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    virtual void on_agent(core::AgentId id, const core::AgentFacts& facts) = 0;
    /// Its process ended, or the connection did; what was set ended with it.
    virtual void on_agent_gone(core::AgentId id, std::string_view why) = 0;
  };
  virtual ~AgentHub() = default;
  virtual void set_events(Events* events) = 0;
  /// Puts settings in force soon after; the answer is the number that `AgentReport::settings`
  /// reaches then. `gone` for an agent that is not there.
  [[nodiscard]] virtual core::Result<std::uint32_t> set(core::AgentId id,
                                                        const core::AgentSettings& settings) = 0;
  /// Nothing where there is no agent, it has not reported yet, or what it reports makes no sense.
  [[nodiscard]] virtual std::optional<core::AgentReport> read(core::AgentId id) = 0;
  /// Reports that made no sense, of all agents, since the start.
  [[nodiscard]] virtual std::uint64_t rejected() const = 0;
};

}  // namespace apusched::ports
