// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "app/service.hpp"
#include "doubles/fake_agents.hpp"
#include "doubles/fake_cpu_energy.hpp"
#include "doubles/fake_freezer.hpp"
#include "doubles/fake_idle_latency.hpp"
#include "doubles/fake_meters.hpp"
#include "doubles/fake_ports.hpp"
#include "doubles/fake_power.hpp"
#include "doubles/fake_world.hpp"

namespace apusched::app {

using namespace std::chrono_literals;
using core::LeverKind;
using core::Outcome;
using doubles::nice_of;
using doubles::pid_of;

/// A Service over fakes. Outside of it: the world, which a restart of the service leaves alone.
class ServiceTest : public ::testing::Test {
 protected:
  void start(bool dry_run = false) {
    ports_.emplace(Ports{
        processes_, scheduler_, units_, topology_, levels_, store_, loop_, report_,
        [this](const ports::GpuFacts&) { return std::make_unique<doubles::FakeHelper>(helper_); },
        agent_hub_, meters_port_, nullptr, &power_, idle_port_, &freezer_, &energy_});
    service_ = std::make_unique<Service>(*ports_, config_, dry_run);
    ASSERT_TRUE(service_->start());
    loop_.settle();
  }
  /// The daemon is killed: nothing is restored.
  void crash() { service_.reset(); }

  core::Result<core::RegistrationId> add(int pid, const std::string& profile = "llm-interactive",
                                         std::optional<bool> children = std::nullopt) {
    auto handle = processes_.open(pid_of(pid));
    if (!handle) return tl::unexpected(handle.error());
    auto id = service_->add({std::move(*handle), profile, children, "test"});
    return id;
  }
  core::RegistrationId added(int pid, const std::string& profile = "llm-interactive",
                             std::optional<bool> children = std::nullopt) {
    const auto id = add(pid, profile, children);
    EXPECT_TRUE(id) << (id ? "" : core::to_sentence(id.error()));
    loop_.settle();
    return *id;
  }
  void remove(core::RegistrationId id) {
    EXPECT_TRUE(service_->remove(id, "test"));
    loop_.settle();
  }
  void exit(int pid) {
    world_.processes.erase(pid);
    loop_.become_readable(pid);
  }
  void scan() { loop_.advance(config_.limits.scan_interval + 1ms); }

  std::optional<core::LeverStatus> lever(core::RegistrationId id, LeverKind kind) {
    const auto view = service_->view(id);
    if (!view) return std::nullopt;
    for (const auto& status : view->levers)
      if (status.kind == kind) return status;
    return std::nullopt;
  }
  Outcome outcome(core::RegistrationId id, LeverKind kind) {
    const auto status = lever(id, kind);
    return status ? status->outcome : Outcome::pending;
  }
  int autogroup() { return world_.autogroups.at("/autogroup-1"); }
  void expect_clean() {
    EXPECT_TRUE(service_->clean());
    EXPECT_EQ(store_.ledger.size(), 0U);
  }

  doubles::FakeWorld world_;
  doubles::FakeProcesses processes_{world_};
  doubles::FakeScheduler scheduler_{world_};
  doubles::FakeUnits units_;
  doubles::FakeTopology topology_;
  doubles::FakeLevels levels_;
  doubles::FakeStore store_{world_};
  doubles::FakeLoop loop_;
  doubles::RecordingReport report_;
  doubles::HelperLog helper_;
  // Here, because the service lets go of them when it ends.
  doubles::FakeAgents agents_;
  doubles::FakeMeters meters_;
  doubles::FakePower power_;
  doubles::FakeFreezer freezer_;
  doubles::FakeIdleLatency idle_;
  doubles::FakeCpuEnergy energy_;
  ports::IdleLatency* idle_port_ = nullptr;
  ports::AgentHub* agent_hub_ = nullptr;
  ports::Meters* meters_port_ = nullptr;
  core::Config config_ = core::default_config();
  std::optional<Ports> ports_;
  std::unique_ptr<Service> service_;
};

}  // namespace apusched::app
