// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>

#include "ports/agents.hpp"

namespace apusched::doubles {

/// Agents that do at once what they are told, unless a test says otherwise.
class FakeAgents final : public ports::AgentHub {
 public:
  struct Agent {
    core::AgentSettings settings;
    std::uint32_t sequence = 0;
    core::AgentReport report;
  };

  void set_events(Events* events) override { events_ = events; }
  core::Result<std::uint32_t> set(core::AgentId id, const core::AgentSettings& settings) override {
    const auto found = agents.find(id);
    if (found == agents.end())
      return core::fail(core::ErrorCode::gone, "set up agent", core::to_string(id), "gone");
    ++sets;
    found->second.settings = settings;
    found->second.sequence += 2;
    if (obeys) found->second.report.settings = found->second.sequence;
    return found->second.sequence;
  }
  std::optional<core::AgentReport> read(core::AgentId id) override {
    const auto found = agents.find(id);
    return found == agents.end() ? std::nullopt : std::optional(found->second.report);
  }
  std::uint64_t rejected() const override { return 0; }

  core::AgentId come(const core::AgentFacts& facts) {
    const auto id = *core::AgentId::make(next_++);
    agents[id].report.masks.resize(facts.gpus.size());
    events_->on_agent(id, facts);
    return id;
  }
  void go(core::AgentId id) {
    agents.erase(id);
    events_->on_agent_gone(id, "it has exited");
  }

  std::map<core::AgentId, Agent> agents;
  bool obeys = true;
  int sets = 0;

 private:
  Events* events_ = nullptr;
  std::uint32_t next_ = 1;
};

}  // namespace apusched::doubles
