// SPDX-License-Identifier: MIT
// The part of app::Service that raises the slices above a unit.
#include <algorithm>

#include "app/service.hpp"

namespace apusched::app {
namespace {

core::LeverStatus slice_status(core::Outcome outcome, std::string target, std::string detail) {
  return {core::LeverKind::slice_weight, outcome, std::move(target), {}, std::move(detail)};
}

}  // namespace

/// Which slices may be raised now. Cheap enough for each tick in which the target is missed: one
/// small file for each unit beside the path.
void Service::slices_status(Registration& registration) {
  const auto policy = config_.control.raise_slices;
  if (!registration.profile.cpu_weight || registration.unit.empty()) return;
  if (policy == core::RaiseSlices::never)
    return set_status(registration, slice_status(core::Outcome::unsupported, {},
                                                 "control.raise_slices is never"));
  const auto steps = core::slices_above(registration.placement.unified, registration.unit);
  if (steps.empty())
    return set_status(registration, slice_status(core::Outcome::unsupported, {},
                                                 "the unit is in no slice of cgroup v2"));
  std::set<std::string> allowed;
  std::string why_not;
  for (const auto& step : steps) {
    const auto other = policy == core::RaiseSlices::always
                           ? core::Result<std::string>(std::string())
                           : ports_.processes.occupied_beside(step.path, step.child);
    if (other && other->empty()) {
      allowed.insert(step.slice);
    } else if (why_not.empty()) {
      why_not = other ? step.slice + " also has " + *other +
                            "; control.raise_slices: always raises it all the same"
                      : core::to_sentence(other.error());
    }
  }
  registration.raisable = std::move(allowed);
  if (is_engaged(registration, core::LeverKind::slice_weight)) hold_slices(registration);
  if (registration.raisable.empty())
    return set_status(registration, slice_status(core::Outcome::unsupported, {}, why_not));
  slice_changed(registration);
}

/// Those that may be raised while the rung is engaged, none else: what another unit has come into
/// meanwhile goes back.
void Service::hold_slices(Registration& registration) {
  const bool strong = is_engaged(registration, core::LeverKind::slice_weight);
  const auto wanted = strong ? registration.raisable : std::set<std::string>();
  const auto weight =
      core::Weight::make(config_.control.strong_cpu_weight).value_or(core::Weight());
  const auto before = std::exchange(registration.slices, wanted);
  for (const auto& slice : before)
    if (!wanted.contains(slice)) cpu_weight_.release(slice, registration.id);
  for (const auto& slice : wanted)
    if (!before.contains(slice)) cpu_weight_.hold(slice, {registration.id, weight});
  if (before != wanted) slice_changed(registration);
}

/// The worst that became of any of them.
void Service::slice_changed(Registration& registration) {
  const bool strong = !registration.slices.empty();
  auto status = slice_status(core::Outcome::applied, {}, {});
  status.value = strong ? std::to_string(config_.control.strong_cpu_weight) : "left alone";
  for (const auto& slice : strong ? registration.slices : registration.raisable) {
    status.target += (status.target.empty() ? "" : ", ") + slice;
    const auto state = strong ? cpu_weight_.state(slice) : std::nullopt;
    if (!state || state->outcome == core::Outcome::applied) continue;
    status.outcome = state->outcome;
    status.detail = slice + ": " + state->detail;
  }
  if (dry_run_) status.outcome = core::Outcome::dry_run;
  if (status.detail.empty())
    status.detail = strong ? "acts against what is beside " + status.target
                           : "raised while the target is missed";
  const auto before = registration.levers;
  set_status(registration, std::move(status));
  if (observer_ != nullptr && before != registration.levers) observer_->on_changed(registration.id);
}

}  // namespace apusched::app
