// SPDX-License-Identifier: MIT
#include "app/cpu_latency.hpp"

#include <algorithm>

namespace apusched::app {
namespace {

using namespace std::chrono_literals;
/// A person or a driver disables idle states now and then.
constexpr auto kLookInterval = 5s;

}  // namespace

CpuLatency::CpuLatency(ports::IdleLatency* port, PowerSaving& power, ports::EventLoop& loop,
                       const core::Config& config, bool dry_run)
    : port_(port), power_(power), loop_(loop), config_(config), dry_run_(dry_run) {}

CpuLatency::Obstacle CpuLatency::obstacle(core::IdleLimit limit) {
  using enum core::Outcome;
  if (port_ == nullptr) return {unsupported, "the kernel has no limit on CPU latency"};
  if (auto why = look(limit); !why.empty()) return {unsupported, std::move(why)};
  if (power_.now() && !config_.control.level_on_battery)
    return {standby, "the machine is to save power; see control.level_on_battery"};
  if (dry_run_) return {dry_run, "would be held while the dispatch target is missed"};
  refused_.forget_after(config_.control.retry_after, loop_.now());
  return {refused_.outcome(), refused_.why()};
}

std::string CpuLatency::look(core::IdleLimit limit) {
  const auto now = loop_.now();
  if (!deepest_ || now - looked_at_ >= kLookInterval) {
    deepest_ = port_->deepest();
    looked_at_ = now;
  }
  const auto& deepest = *deepest_;
  if (!deepest) return deepest.error().detail;
  if (deepest->exit > std::chrono::microseconds(limit.value())) return {};
  return "no idle state takes longer to leave: the deepest, " + deepest->name + ", takes " +
         std::to_string(deepest->exit.count()) + " µs";
}

void CpuLatency::hold(core::RegistrationId holder, core::IdleLimit limit) {
  wishes_.insert_or_assign(holder, limit);
  follow();
}

void CpuLatency::release(core::RegistrationId holder) {
  if (wishes_.erase(holder) > 0) follow();
}

void CpuLatency::follow() {
  if (port_ == nullptr || dry_run_) return;
  if (wishes_.empty()) {
    port_->release();
    in_force_.reset();
    return;
  }
  const auto strictest =
      std::ranges::min_element(wishes_, {}, [](const auto& item) { return item.second; })->second;
  if (in_force_ == strictest) return;
  if (const auto done = port_->limit(strictest); !done) {
    refused_.set(done.error(), loop_.now());
    in_force_.reset();
    return;
  }
  refused_.forget();
  in_force_ = strictest;
}

core::LeverStatus CpuLatency::status(core::RegistrationId holder, core::IdleLimit limit) {
  core::LeverStatus status{core::LeverKind::cpu_latency, core::Outcome::standby, "all CPUs",
                           core::to_string(limit) + " µs",
                           "held only while the dispatch target is missed"};
  if (auto found = obstacle(limit); !found.why.empty()) {
    status.outcome = found.outcome;
    status.detail = std::move(found.why);
  } else if (wishes_.contains(holder) && in_force_) {
    status.outcome = core::Outcome::applied;
    status.detail = "idle CPUs wake up sooner, for all processes";
  }
  return status;
}

}  // namespace apusched::app
