// SPDX-License-Identifier: MIT
// The part of app::Service that holds for a process what brings its packets to the GPU sooner,
// while its dispatch target is missed. But for the freezer, and the energy preference of CPUs with
// background work only, these act without rivals. Waits for a CPU, the other target, begin when a
// CPU is awake already and a timer has fired: they do not see any of it.
#include <algorithm>

#include "app/service.hpp"

namespace apusched::app {
namespace {

using core::LeverKind;
/// Until CPUs that sleep have woken up once and chosen anew.
constexpr core::Moment kWakeSettles{200};
/// Not measured by anything here, and not nothing: what keeps a package out of its deepest states.
constexpr double kWakeWatts = 1;
/// Timers that fire by themselves wake up few CPUs more: what dispatches is awake most of the time.
constexpr double kNoWatts = 0;

bool has(const std::vector<std::string>& engaged, LeverKind kind) {
  return std::ranges::find(engaged, core::to_string(kind)) != engaged.end();
}

core::Rung dispatch_rung(LeverKind kind, const std::string& why_not, double watts) {
  return {std::string(core::to_string(kind)), why_not.empty(), why_not, false, kWakeSettles, watts};
}

}  // namespace

std::string Service::why_no_slack(Registration& registration) {
  if (dry_run_) return "this is a dry run";
  registration.slack_refused.forget_after(config_.control.retry_after, ports_.loop.now());
  return registration.slack_refused.why();
}

std::vector<core::Rung> Service::dispatch_rungs(core::RegistrationId id, bool misses) {
  const auto found = registrations_.find(id);
  if (found == registrations_.end()) return {};
  std::vector<core::Rung> rungs;
  if (const auto limit = config_.control.cpu_latency)
    rungs.push_back(
        dispatch_rung(LeverKind::cpu_latency, cpu_latency_.why_not(*limit), kWakeWatts));
  if (config_.control.timer_slack)
    rungs.push_back(dispatch_rung(LeverKind::timer_slack, why_no_slack(found->second), kNoWatts));
  for (auto& rung : background_energy_.rungs(id, misses)) rungs.push_back(std::move(rung));
  for (auto& rung : hold_back_.rungs(id, misses)) rungs.push_back(std::move(rung));
  dispatch_statuses(found->second);
  return rungs;
}

void Service::hold_for_dispatch(core::RegistrationId id, const std::vector<std::string>& engaged) {
  const auto found = registrations_.find(id);
  if (found == registrations_.end()) return;
  auto& registration = found->second;
  const bool slack_was = is_engaged_for_dispatch(registration, LeverKind::timer_slack);
  registration.engaged_for_dispatch = engaged;
  if (const auto limit = config_.control.cpu_latency) {
    if (has(engaged, LeverKind::cpu_latency))
      cpu_latency_.hold(id, *limit);
    else
      cpu_latency_.release(id);
  }
  background_energy_.want(id, has(engaged, LeverKind::energy_preference));
  hold_back_.want(id, core::Latency::dispatch, has(engaged, LeverKind::freezer));
  if (slack_was != is_engaged_for_dispatch(registration, LeverKind::timer_slack))
    hold_slack(registration);
  dispatch_statuses(registration);
}

/// Nothing is left of it where it is held no longer.
void Service::hold_slack(Registration& registration) {
  const bool engaged = is_engaged_for_dispatch(registration, LeverKind::timer_slack);
  const auto part = slack_part();
  for (auto& [pid, member] : registration.members) {
    if (engaged) {
      const auto result = apply_threads(registration, member, part);
      if (!result && result.error().code != core::ErrorCode::gone)
        registration.slack_refused.set(result.error(), ports_.loop.now());
      member.summaries.insert_or_assign(part.kind, result);
      continue;
    }
    part.lever.release(member.slack);
    member.slack = ThreadState{member.nice.process};
    member.summaries.erase(part.kind);
  }
  if (engaged)
    threads_status(registration);
  else
    await_stragglers();
}

void Service::dispatch_statuses(Registration& registration) {
  const auto before = registration.levers;
  if (const auto limit = config_.control.cpu_latency)
    set_status(registration, cpu_latency_.status(registration.id, *limit));
  if (const auto slack = config_.control.timer_slack;
      slack && !is_engaged_for_dispatch(registration, LeverKind::timer_slack)) {
    const auto why_not = why_no_slack(registration);
    set_status(
        registration,
        {LeverKind::timer_slack,
         dry_run_          ? core::Outcome::dry_run
         : why_not.empty() ? core::Outcome::standby
                           : core::Outcome::denied,
         "every thread", core::to_string(*slack) + " ns",
         why_not.empty() || dry_run_ ? "held only while the dispatch target is missed" : why_not});
  }
  if (auto status = background_energy_.status(registration.id))
    set_status(registration, std::move(*status));
  if (observer_ != nullptr && before != registration.levers) observer_->on_changed(registration.id);
}

/// It is shown where it is wanted.
void Service::energy_changed() {
  for (auto& [id, registration] : registrations_)
    if (registration.levers.contains(LeverKind::energy_preference)) dispatch_statuses(registration);
  finish_stop();
}

}  // namespace apusched::app
