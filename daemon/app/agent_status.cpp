// SPDX-License-Identifier: MIT
#include "app/agent_status.hpp"

namespace apusched::app {
namespace {

bool can(core::LeverKind kind, const core::AgentFacts& facts) {
  switch (kind) {
    case core::LeverKind::cu_mask:
      return facts.can_mask;
    case core::LeverKind::queue_priority:
      return facts.can_prioritise;
    case core::LeverKind::serial:
      return facts.can_serialise;
    case core::LeverKind::queue_limit:
      return facts.can_limit_queues;
    case core::LeverKind::memory_limit:
      return facts.can_limit_memory;
    default:
      return false;
  }
}

AgentVerdict verdict_of(const core::AgentSetting& setting) {
  switch (setting.outcome) {
    case core::AgentOutcome::nothing:
      return {core::Outcome::applied, "on the queues that it will make"};
    case core::AgentOutcome::applied:
      return {core::Outcome::applied, {}};
    case core::AgentOutcome::failed:
      return {core::Outcome::failed,
              "the HSA runtime refused it with status " + std::to_string(setting.detail)};
    case core::AgentOutcome::conflict:
      return {core::Outcome::contended,
              "the program's own mask has none of these CUs; its own is in force alone"};
    case core::AgentOutcome::unsupported:
      return {core::Outcome::unsupported, "not on the queues that it has"};
  }
  return {};
}

AgentVerdict worst_mask(const core::AgentReport& report) {
  AgentVerdict verdict{core::Outcome::applied, {}};
  for (const auto& setting : report.masks) {
    if (setting.outcome == core::AgentOutcome::nothing) continue;
    if (auto next = verdict_of(setting); worse(next.outcome, verdict.outcome))
      verdict = std::move(next);
  }
  return verdict;
}

AgentVerdict refusals(std::uint64_t count, const char* what) {
  return {core::Outcome::applied,
          count == 0 ? std::string() : std::to_string(count) + " " + what + " refused so far"};
}

}  // namespace

std::string why_no_agent(const Registration& registration) {
  const auto pid = core::to_string(registration.key.pid);
  if (registration.expects_agent && !registration.gpus.empty())
    return "process " + pid +
           " was started with the agent and has GPU queues, but the agent did not greet: the HSA "
           "runtime skips it where a rocprofiler tool is loaded (set "
           "HSA_TOOLS_ROCPROFILER_V1_TOOLS=1 or HSA_TOOLS_DISABLE_REGISTER=1), where the program "
           "cleared its environment, and where the socket cannot be reached from its container";
  if (registration.expects_agent) return "no agent yet: process " + pid + " has no GPU queue";
  return "no agent in process " + pid + ": start the program with apuschedctl run";
}

AgentVerdict judge_agent(core::LeverKind kind, const core::AgentFacts& facts,
                         const std::optional<core::AgentReport>& report) {
  if (!can(kind, facts))
    return {core::Outcome::unsupported, "not with the HSA runtime of this process"};
  if (!report) return {core::Outcome::pending, {}};
  switch (kind) {
    case core::LeverKind::cu_mask:
      return worst_mask(*report);
    case core::LeverKind::queue_priority:
      return verdict_of(report->priority);
    case core::LeverKind::serial:
      return verdict_of(report->serial);
    case core::LeverKind::queue_limit:
      return refusals(report->refused_queues, "queues");
    case core::LeverKind::memory_limit:
      return refusals(report->refused_allocations, "allocations");
    default:
      return {};
  }
}

bool worse(core::Outcome a, core::Outcome b) {
  const auto rank = [](core::Outcome outcome) {
    switch (outcome) {
      case core::Outcome::applied:
      case core::Outcome::dry_run:
        return 0;
      case core::Outcome::pending:
      case core::Outcome::standby:
        return 1;
      case core::Outcome::gone:
        return 2;
      case core::Outcome::unsupported:
        return 3;
      case core::Outcome::contended:
        return 4;
      case core::Outcome::denied:
      case core::Outcome::failed:
        return 5;
    }
    return 0;
  };
  return rank(a) > rank(b);
}

}  // namespace apusched::app
