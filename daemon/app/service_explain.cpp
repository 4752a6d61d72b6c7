// SPDX-License-Identifier: MIT
// The part of app::Service that tells why things are as they are.
#include <array>

#include "app/agent_status.hpp"
#include "app/service.hpp"

namespace apusched::app {
namespace {

constexpr std::array kLevers{core::LeverKind::nice,         core::LeverKind::scheduling,
                             core::LeverKind::io_class,     core::LeverKind::autogroup,
                             core::LeverKind::cpu_weight,   core::LeverKind::slice_weight,
                             core::LeverKind::io_weight,    core::LeverKind::performance_level,
                             core::LeverKind::cu_mask,      core::LeverKind::queue_priority,
                             core::LeverKind::serial,       core::LeverKind::queue_limit,
                             core::LeverKind::memory_limit, core::LeverKind::cpu_latency,
                             core::LeverKind::timer_slack,  core::LeverKind::energy_preference,
                             core::LeverKind::freezer};

/// Which setting keeps everybody from it; empty: none.
std::string off_by(core::LeverKind kind, const core::ControlSection& control) {
  using enum core::LeverKind;
  if (kind == cpu_latency && !control.cpu_latency) return "control.cpu_latency_us is null";
  if (kind == timer_slack && !control.timer_slack) return "control.timer_slack_ns is null";
  if (kind == energy_preference && control.background_energy == core::EnergySaving::off)
    return "control.background_energy_preference is off";
  if (kind == freezer && control.freeze_percent == 0)
    return "control.freeze_background_percent is 0";
  return {};
}

std::string why_left_alone(core::LeverKind kind, const Registration& registration,
                           const core::ControlSection& control) {
  if (auto off = off_by(kind, control); !off.empty()) return off;
  if (core::is_for_dispatch(kind))
    return "held only for a dispatch target, which needs the agent in the process";
  if (kind == core::LeverKind::freezer)
    return "only units that are wholly background, while others miss their targets";
  return "profile " + registration.profile.name + " does not set it";
}

ExplainLine line_of(core::LeverKind kind, const Registration& registration,
                    const core::ControlSection& control) {
  ExplainLine line{std::string(core::to_string(kind)), "left alone", {}};
  const auto found = registration.levers.find(kind);
  if (found == registration.levers.end()) {
    line.why = why_left_alone(kind, registration, control);
    return line;
  }
  const auto& status = found->second;
  line.value = status.value + (status.target.empty() ? "" : " on " + status.target);
  line.why = std::string(core::to_string(status.outcome)) +
             (status.detail.empty() ? "" : ": " + status.detail);
  return line;
}

std::string agent_text(const AgentView& agent) {
  std::string text = std::to_string(agent.queues) + (agent.queues == 1 ? " queue, " : " queues, ") +
                     std::to_string(agent.submitted) + " dispatches";
  for (const auto& [gpu, mask] : agent.masks)
    text.append(", CUs ").append(mask).append(" of ").append(gpu);
  return text;
}

}  // namespace

std::vector<ExplainLine> Service::explain(core::Pid pid) const {
  const Registration* owner = nullptr;
  for (const auto& [id, registration] : registrations_)
    if (registration.members.contains(pid)) owner = &registration;
  if (owner == nullptr)
    return {{"registered", "no", "nothing of it is changed; apuschedctl register or run does"}};
  const auto& registration = *owner;
  std::vector<ExplainLine> lines;
  lines.push_back({"registered", "yes",
                   registration.key.pid == pid
                       ? "asked for by " + registration.source
                       : "as a child of process " + core::to_string(registration.key.pid)});
  lines.push_back({"class", std::string(core::to_string(registration.profile.work_class)),
                   "of profile " + registration.profile.name});
  for (const auto kind : kLevers) lines.push_back(line_of(kind, registration, config_.control));
  std::string gpus;
  for (const auto& gpu : registration.gpus) gpus += (gpus.empty() ? "" : ", ") + gpu;
  lines.push_back(
      {"gpu_queues", gpus.empty() ? "none" : "on " + gpus, "what amdkfd lists for its processes"});
  const auto agent = agent_watch_.view(registration);
  lines.push_back({"agent", agent ? "attached" : "none",
                   agent ? agent_text(*agent) : why_no_agent(registration)});
  return lines;
}

void Service::control_state_changed(core::RegistrationId id) {
  const auto is_saturated = [](const std::optional<ControlView>& view) {
    return view && view->state == core::to_string(core::ControlState::saturated);
  };
  const auto found = registrations_.find(id);
  const bool counts = found != registrations_.end() &&
                      found->second.profile.work_class != core::WorkClass::background;
  admission_.note(
      id, counts && (is_saturated(control_.view(id)) || is_saturated(gpu_control_.view(id))),
      moment(ports_.loop));
  if (observer_ != nullptr) observer_->on_changed(id);
}

/// What runs already is never refused: to be registered is what makes it give way.
core::Result<AdmissionView> Service::admission(const std::string& profile) const {
  const auto named = profile_named(profile);
  if (!named) return tl::unexpected(named.error());
  const auto wait = config_.control.admission_wait;
  const bool asks = named->work_class == core::WorkClass::background && wait.count() > 0;
  if (!asks || admission_.open(moment(ports_.loop))) return AdmissionView{};
  const auto whose = admission_.closed_for();
  const auto found = whose ? registrations_.find(*whose) : registrations_.end();
  if (found == registrations_.end())
    return AdmissionView{false, wait, "a process missed its target a moment ago"};
  return AdmissionView{false, wait,
                       "process " + core::to_string(found->second.key.pid) +
                           " misses its target, and everything that can be done for it is done"};
}

core::Result<std::map<std::string, std::string>> Service::launch_environment(
    const std::string& profile, core::LaunchOptions options) const {
  const auto found = profile_named(profile);
  if (!found) return tl::unexpected(found.error());
  for (const auto& gpu : gpu_watch_.views()) options.gpus.push_back(gpu.facts.geometry);
  options.agent = options.agent && config_.agent.enabled;
  return core::launch_environment(*found, options);
}

}  // namespace apusched::app
