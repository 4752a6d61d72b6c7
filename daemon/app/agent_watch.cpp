// SPDX-License-Identifier: MIT
#include "app/agent_watch.hpp"

#include <algorithm>
#include <utility>

#include "app/agent_status.hpp"

namespace apusched::app {

namespace {

constexpr double kHardlyBusy = 0.05;
/// A decode loop has packets waiting a few percent of the time: fewer looks a second find too
/// little.
constexpr std::uint32_t kTargetSampleHz = 100;
/// An agent opens a gate by itself after this, should nothing more come.
constexpr auto kGateWish = std::chrono::milliseconds{2000};

}  // namespace

AgentWatch::AgentWatch(ports::AgentHub* hub, ports::EventLoop& loop, ports::Report& report,
                       const core::Config& config, bool dry_run)
    : hub_(hub), loop_(loop), report_(report), config_(config), dry_run_(dry_run) {
  if (hub_ != nullptr) hub_->set_events(this);
}

AgentWatch::~AgentWatch() {
  if (hub_ != nullptr) hub_->set_events(nullptr);
}

void AgentWatch::set_gpus(const std::vector<ports::GpuFacts>& gpus) {
  gpus_.clear();
  for (const auto& gpu : gpus) gpus_.emplace(gpu.pci, gpu.geometry);
}

void AgentWatch::on_agent(core::AgentId id, const core::AgentFacts& facts) {
  agents_.emplace(id, Agent{facts, {}, 0, {}, {}, core::LatencyWindow(kWaitsKept), {}, 0, 0, {}});
  if (changed_) changed_();
}

void AgentWatch::on_agent_gone(core::AgentId id, std::string_view why) {
  const auto agent = agents_.extract(id);
  if (agent.empty()) return;
  if (agent.mapped().holder)
    report_.info("the agent in process " + core::to_string(agent.mapped().facts.process.pid) +
                 " is gone: " + std::string(why));
  if (changed_) changed_();
}

void AgentWatch::update(const Registrations& registrations) {
  if (hub_ == nullptr) return;
  std::map<core::ProcessKey, core::RegistrationId> holders;
  for (const auto& [id, registration] : registrations)
    for (const auto& [pid, member] : registration.members) holders.emplace(member.nice.process, id);
  for (auto& [id, agent] : agents_) {
    const auto holder = holders.find(agent.facts.process);
    agent.holder = holder == holders.end() ? std::nullopt : std::optional(holder->second);
  }
  plan(registrations);
  renew_gate();
  for (auto& [id, agent] : agents_) {
    send(id, agent, wanted(agent, registrations));
    take_report(id, agent);
  }
}

core::GpuParty AgentWatch::party_of(const Registration& registration,
                                    const std::vector<const Agent*>& agents) const {
  const auto& profile = registration.profile;
  core::GpuParty party{registration.id,
                       profile.work_class,
                       profile.cu_weight,
                       profile.cu_exclusive,
                       profile.cu_limit_percent,
                       0,
                       false,
                       true,
                       true,
                       true,
                       profile.queue_priority == core::QueuePriority::low};
  for (const auto* agent : agents) {
    party.busy = std::max(party.busy, agent->load.busy());
    party.behind |= agent->load.behind();
    party.can_mask &= agent->facts.can_mask;
    party.can_prioritise &= agent->facts.can_prioritise;
    party.can_gate &= agent->facts.can_gate;
  }
  return party;
}

/// A registration takes part in dividing a GPU once it has queues there and an agent to set them.
std::map<core::PciAddress, std::vector<core::GpuParty>> AgentWatch::parties(
    const Registrations& registrations) const {
  std::map<core::PciAddress, std::vector<core::GpuParty>> result;
  std::map<core::RegistrationId, std::vector<const Agent*>> agents;
  for (const auto& [id, agent] : agents_)
    if (agent.holder) agents[*agent.holder].push_back(&agent);
  for (const auto& [holder, its] : agents) {
    const auto registration = registrations.find(holder);
    if (registration == registrations.end()) continue;
    const auto party = party_of(registration->second, its);
    for (const auto& [pci, geometry] : gpus_)
      if (registration->second.gpus.contains(pci.text())) result[pci].push_back(party);
  }
  return result;
}

void AgentWatch::plan(const Registrations& registrations) {
  const auto everybody = parties(registrations);
  for (const auto& [pci, geometry] : gpus_) {
    const auto here = everybody.find(pci);
    const auto pressure = pressure_.find(pci);
    const auto demands = core::demands_under(
        here == everybody.end() ? std::vector<core::GpuParty>() : here->second,
        pressure == pressure_.end() ? std::nullopt : std::optional(pressure->second));
    auto& current = plans_[pci];
    current = core::plan_cus(geometry, demands, current);
  }
}

void AgentWatch::renew_gate() {
  const auto now = loop_.now().time_since_epoch();
  const bool gates =
      std::ranges::any_of(pressure_, [](const auto& item) { return item.second.gate; });
  if (!gates)
    gate_until_ = std::chrono::nanoseconds{0};
  else if (gate_until_ - now < kGateWish / 2)
    gate_until_ = now + kGateWish;
}

void AgentWatch::add_pressure(core::AgentSettings& settings, const Agent& agent,
                              core::WorkClass work_class) const {
  for (const auto& gpu : agent.facts.gpus) {
    const auto pressure = pressure_.find(gpu.pci);
    if (pressure == pressure_.end() || work_class >= pressure->second.protects) continue;
    if (pressure->second.lower_priority) settings.priority = core::QueuePriority::low;
    if (pressure->second.gate) settings.gate_closed_until = gate_until_;
  }
}

core::AgentSettings AgentWatch::wanted(const Agent& agent,
                                       const Registrations& registrations) const {
  core::AgentSettings settings;
  if (!agent.holder) return settings;
  const auto& profile = registrations.at(*agent.holder).profile;
  settings.priority = profile.queue_priority;
  settings.serial = profile.serial;
  settings.queue_limit = profile.queue_limit;
  settings.memory_limit = profile.memory_limit;
  settings.sample_hz = config_.agent.sample_hz;
  if (profile.target_dispatch && settings.sample_hz > 0)
    settings.sample_hz = std::max(settings.sample_hz, kTargetSampleHz);
  add_pressure(settings, agent, profile.work_class);
  for (const auto& gpu : agent.facts.gpus) {
    const auto plan = plans_.find(gpu.pci);
    if (plan == plans_.end()) continue;
    const auto mask = plan->second.find(*agent.holder);
    // All CUs: no mask at all, the program's queues are left as they are.
    if (mask != plan->second.end() && mask->second.count() < gpus_.at(gpu.pci).compute_units)
      settings.masks.emplace(gpu.pci, mask->second);
  }
  return settings;
}

void AgentWatch::send(core::AgentId id, Agent& agent, const core::AgentSettings& settings) {
  if (dry_run_ || settings == agent.sent) return;
  // Its end is told as an event of its own.
  if (const auto sequence = hub_->set(id, settings)) {
    agent.sent = settings;
    agent.sequence = *sequence;
  }
}

void AgentWatch::collect() {
  if (hub_ == nullptr) return;
  for (auto& [id, agent] : agents_) {
    if (!agent.holder) continue;
    const auto before = agent.report ? agent.report->samples : 0;
    take_report(id, agent);
    if (agent.report && agent.report->samples == before) agent.load.add_silence();
  }
}

AgentWatch::Seen AgentWatch::take(core::RegistrationId id) {
  Seen seen;
  std::uint64_t count = 0;
  std::chrono::nanoseconds sum{0};
  for (auto& [agent_id, agent] : agents_) {
    if (agent.holder != id) continue;
    seen.worked |= std::exchange(agent.taken, 0) > 0;
    count += std::exchange(agent.fresh_waits, 0);
    sum += std::exchange(agent.fresh_wait, std::chrono::nanoseconds{0});
  }
  if (count > 0)
    seen.wait_us =
        std::chrono::duration<double, std::micro>(sum).count() / static_cast<double>(count);
  return seen;
}

bool AgentWatch::busy(core::RegistrationId id) const {
  return std::ranges::any_of(agents_, [&](const auto& item) {
    return item.second.holder == id && item.second.load.busy() > kHardlyBusy;
  });
}

void AgentWatch::take_report(core::AgentId id, Agent& agent) {
  auto report = hub_->read(id);
  if (!report || report == agent.report) return;
  if (agent.report) agent.taken += report->taken - agent.report->taken;
  agent.load.add(*report, loop_.now().time_since_epoch());
  for (const auto wait : report->waits) {
    agent.waits.add(wait);
    agent.fresh_wait += wait;
    ++agent.fresh_waits;
  }
  agent.report = std::move(report);
}

std::vector<const AgentWatch::Agent*> AgentWatch::agents_of(
    const Registration& registration) const {
  std::vector<const Agent*> found;
  for (const auto& [id, agent] : agents_)
    if (agent.holder == registration.id) found.push_back(&agent);
  return found;
}

std::vector<core::LeverStatus> AgentWatch::statuses(const Registration& registration) const {
  const auto& profile = registration.profile;
  const auto agents = agents_of(registration);
  std::vector<core::LeverStatus> result;
  if (profile.cu_weight || profile.cu_limit_percent)
    result.push_back(cu_status(registration, agents));
  const auto add = [&](core::LeverKind kind, std::string value) {
    result.push_back(judge(registration, agents, kind, std::move(value)));
  };
  if (profile.queue_priority)
    add(core::LeverKind::queue_priority, std::string(core::to_string(*profile.queue_priority)));
  if (profile.serial) add(core::LeverKind::serial, "on");
  if (profile.queue_limit) add(core::LeverKind::queue_limit, core::to_string(*profile.queue_limit));
  if (profile.memory_limit)
    add(core::LeverKind::memory_limit, core::to_string(*profile.memory_limit) + " MiB");
  return result;
}

core::LeverStatus AgentWatch::cu_status(const Registration& registration,
                                        const std::vector<const Agent*>& agents) const {
  std::string value;
  for (const auto& [pci, plan] : plans_) {
    const auto mask = plan.find(registration.id);
    if (mask == plan.end()) continue;
    const auto all = gpus_.at(pci).compute_units;
    value += (value.empty() ? "" : "; ") + std::to_string(mask->second.count()) + " of " +
             std::to_string(all) + " CUs (" + mask->second.to_hex(all) + ") of " + pci.text();
  }
  return judge(registration, agents, core::LeverKind::cu_mask, std::move(value));
}

core::LeverStatus AgentWatch::judge(const Registration& registration,
                                    const std::vector<const Agent*>& agents, core::LeverKind kind,
                                    std::string value) const {
  core::LeverStatus status{kind, core::Outcome::applied, {}, std::move(value), {}};
  if (hub_ == nullptr) {
    status.outcome = core::Outcome::unsupported;
    status.detail = "agent.enabled is false in the configuration";
    return status;
  }
  if (agents.empty()) {
    status.outcome = core::Outcome::unsupported;
    status.detail = why_no_agent(registration);
    return status;
  }
  status.target = std::to_string(agents.size()) + (agents.size() == 1 ? " agent" : " agents");
  if (dry_run_) {
    status.outcome = core::Outcome::dry_run;
    return status;
  }
  for (const auto* agent : agents) {
    const bool in_force =
        agent->report && agent->sequence != 0 && agent->report->settings >= agent->sequence;
    const auto verdict = judge_agent(kind, agent->facts, in_force ? agent->report : std::nullopt);
    if (worse(verdict.outcome, status.outcome)) {
      status.outcome = verdict.outcome;
      status.detail = verdict.detail;
    } else if (status.detail.empty()) {
      status.detail = verdict.detail;
    }
  }
  return status;
}

std::set<core::RegistrationId> AgentWatch::holders() const {
  std::set<core::RegistrationId> ids;
  for (const auto& [id, agent] : agents_)
    if (agent.holder) ids.insert(*agent.holder);
  return ids;
}

std::optional<AgentView> AgentWatch::view(const Registration& registration) const {
  const auto agents = agents_of(registration);
  if (agents.empty()) return std::nullopt;
  AgentView view;
  view.agents = static_cast<std::uint32_t>(agents.size());
  for (const auto* agent : agents) {
    for (const auto& [pci, mask] : agent->sent.masks)
      view.masks.insert_or_assign(pci.text(), mask.to_hex(gpus_.at(pci).compute_units));
    if (const auto length = agent->load.task_length()) view.task_length = length;
    if (const auto waits = agent->waits.summary()) view.waits = waits;
    if (!agent->report) continue;
    const auto& report = *agent->report;
    view.queues += report.queues;
    view.submitted += report.submitted;
    view.in_flight += report.submitted - report.taken;
    view.memory_bytes += report.memory_bytes;
    view.refused_queues += report.refused_queues;
    view.refused_allocations += report.refused_allocations;
  }
  return view;
}

}  // namespace apusched::app
