// SPDX-License-Identifier: MIT
// The part of app::Service that holds for a process what brings its packets to the GPU sooner,
// while its dispatch target is missed. These act without rivals. Waits for a CPU, the other target,
// begin when a CPU is awake already and a timer has fired: they do not see any of it.
#include <algorithm>

#include "app/service.hpp"

namespace apusched::app {
namespace {

using core::LeverKind;
/// Until CPUs that sleep have woken up once and chosen anew.
constexpr core::Moment kWakeSettles{200};
/// Not measured by anything here, and not nothing: what keeps a package out of its deepest states.
constexpr double kWakeWatts = 1;

bool has(const std::vector<std::string>& engaged, LeverKind kind) {
  return std::ranges::find(engaged, core::to_string(kind)) != engaged.end();
}

core::Rung dispatch_rung(LeverKind kind, const std::string& why_not, double watts) {
  return {std::string(core::to_string(kind)), why_not.empty(), why_not, false, kWakeSettles, watts};
}

}  // namespace

std::vector<core::Rung> Service::dispatch_rungs(core::RegistrationId id) {
  const auto found = registrations_.find(id);
  if (found == registrations_.end()) return {};
  std::vector<core::Rung> rungs;
  if (const auto limit = config_.control.cpu_latency)
    rungs.push_back(
        dispatch_rung(LeverKind::cpu_latency, cpu_latency_.why_not(*limit), kWakeWatts));
  dispatch_statuses(found->second);
  return rungs;
}

void Service::hold_for_dispatch(core::RegistrationId id, const std::vector<std::string>& engaged) {
  const auto found = registrations_.find(id);
  if (found == registrations_.end()) return;
  auto& registration = found->second;
  registration.engaged_for_dispatch = engaged;
  if (const auto limit = config_.control.cpu_latency) {
    if (has(engaged, LeverKind::cpu_latency))
      cpu_latency_.hold(id, *limit);
    else
      cpu_latency_.release(id);
  }
  dispatch_statuses(registration);
}

void Service::dispatch_statuses(Registration& registration) {
  const auto before = registration.levers;
  if (const auto limit = config_.control.cpu_latency)
    set_status(registration, cpu_latency_.status(registration.id, *limit));
  if (observer_ != nullptr && before != registration.levers) observer_->on_changed(registration.id);
}

void Service::release_dispatch(Registration& registration) {
  cpu_latency_.release(registration.id);
}

}  // namespace apusched::app
