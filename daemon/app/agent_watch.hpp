// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/registration.hpp"
#include "app/views.hpp"
#include "core/agent.hpp"
#include "core/config.hpp"
#include "core/cu_plan.hpp"
#include "core/gpu_load.hpp"
#include "core/gpu_pressure.hpp"
#include "ports/agents.hpp"
#include "ports/event_loop.hpp"
#include "ports/gpu.hpp"
#include "ports/report.hpp"

namespace apusched::app {

using Registrations = std::map<core::RegistrationId, Registration>;

/// The agents and what is asked of them: finds whose process each is in, divides the CUs, sends
/// settings, and says what came of it. There is no ledger for these: what a program had before is
/// known to the agent in it alone, which puts it back when the daemon lets go or is gone.
/// Owner of the agents' state, of the CU plans and of the wait windows. Event-loop thread.
class AgentWatch final : public ports::AgentHub::Events {
 public:
  /// `hub` is null where agents are off. All borrowed.
  AgentWatch(ports::AgentHub* hub, ports::EventLoop& loop, ports::Report& report,
             const core::Config& config, bool dry_run);
  ~AgentWatch() override;
  AgentWatch(const AgentWatch&) = delete;
  AgentWatch& operator=(const AgentWatch&) = delete;

  void set_gpus(const std::vector<ports::GpuFacts>& gpus);
  /// Called when an agent comes or goes: `update` is due.
  void on_changed(std::function<void()> changed) { changed_ = std::move(changed); }

  /// Brings agents in line with the registrations and takes their reports.
  void update(const Registrations& registrations);
  /// What is asked of the others on a GPU; acts with the next update.
  void press(std::map<core::PciAddress, core::GpuPressure> pressure) {
    pressure_ = std::move(pressure);
  }
  /// Takes the reports of all agents; cheap: no system call.
  void collect();
  /// What the agents of a registration have seen since it was last taken.
  struct Seen {
    bool worked = false;            ///< the GPU fetched packets
    std::optional<double> wait_us;  ///< mean of the waits that were measured
  };
  [[nodiscard]] Seen take(core::RegistrationId id);
  /// Its agents find packets waiting, more often than not hardly ever.
  [[nodiscard]] bool busy(core::RegistrationId id) const;
  /// Who has queues on which GPU and an agent.
  [[nodiscard]] std::map<core::PciAddress, std::vector<core::GpuParty>> parties(
      const Registrations& registrations) const;
  /// What became of the settings that the profile asks for.
  [[nodiscard]] std::vector<core::LeverStatus> statuses(const Registration& registration) const;
  /// Nothing where no process of the registration has an agent.
  [[nodiscard]] std::optional<AgentView> view(const Registration& registration) const;
  [[nodiscard]] std::size_t count() const { return agents_.size(); }
  /// Registrations with an agent in one of their processes.
  [[nodiscard]] std::set<core::RegistrationId> holders() const;

  void on_agent(core::AgentId id, const core::AgentFacts& facts) override;
  void on_agent_gone(core::AgentId id, std::string_view why) override;

 private:
  struct Agent {
    core::AgentFacts facts;
    core::AgentSettings sent;
    std::uint32_t sequence = 0;  ///< of `sent`; 0: nothing was sent yet
    std::optional<core::AgentReport> report;
    core::GpuLoad load;
    core::LatencyWindow waits{kWaitsKept};
    std::optional<core::RegistrationId> holder;
    // Since it was last taken.
    std::uint64_t taken = 0;
    std::uint64_t fresh_waits = 0;
    std::chrono::nanoseconds fresh_wait{0};
  };
  static constexpr std::size_t kWaitsKept = 1000;

  void plan(const Registrations& registrations);
  [[nodiscard]] core::GpuParty party_of(const Registration& registration,
                                        const std::vector<const Agent*>& agents) const;
  void add_pressure(core::AgentSettings& settings, const Agent& agent,
                    core::WorkClass work_class) const;
  void renew_gate();
  void send(core::AgentId id, Agent& agent, const core::AgentSettings& settings);
  void take_report(core::AgentId id, Agent& agent);
  [[nodiscard]] core::AgentSettings wanted(const Agent& agent,
                                           const Registrations& registrations) const;
  [[nodiscard]] std::vector<const Agent*> agents_of(const Registration& registration) const;
  [[nodiscard]] core::LeverStatus cu_status(const Registration& registration,
                                            const std::vector<const Agent*>& agents) const;
  [[nodiscard]] core::LeverStatus judge(const Registration& registration,
                                        const std::vector<const Agent*>& agents,
                                        core::LeverKind kind, std::string value) const;

  ports::AgentHub* hub_;
  ports::EventLoop& loop_;
  ports::Report& report_;
  const core::Config& config_;
  bool dry_run_;
  std::function<void()> changed_;
  std::map<core::PciAddress, core::CuGeometry> gpus_;
  std::map<core::PciAddress, core::CuPlan> plans_;
  std::map<core::PciAddress, core::GpuPressure> pressure_;
  std::chrono::nanoseconds gate_until_{0};
  std::map<core::AgentId, Agent> agents_;
};

}  // namespace apusched::app
