// SPDX-License-Identifier: MIT
// The part of app::Service that deals with what every thread has for itself.
#include <algorithm>
#include <array>

#include "app/service.hpp"

namespace apusched::app {
namespace {

using namespace std::chrono_literals;
// A clone copies the page tables before it can be seen: some ms for each GiB in use.
constexpr auto kForkTime = 100ms;
/// The last of ioprio_set(2)'s levels.
constexpr std::uint16_t kLowestLevel = 7;

core::IoPriority io_priority_of(core::IoClass io_class) {
  // The idle class has no levels.
  return {io_class, io_class == core::IoClass::best_effort ? kLowestLevel : std::uint16_t{0}};
}

}  // namespace

std::array<Service::ThreadPart, 4> Service::thread_parts() {
  return {nice_part(),
          {core::LeverKind::scheduling, thread_policy_, &Member::scheduling},
          {core::LeverKind::io_class, thread_io_, &Member::io},
          slack_part()};
}

/// Nothing where the profile leaves it alone.
std::optional<core::LeverValue> Service::thread_wish(const Registration& registration,
                                                     core::LeverKind kind) const {
  const auto& profile = registration.profile;
  if (kind == core::LeverKind::scheduling) {
    if (!profile.scheduling) return std::nullopt;
    return *profile.scheduling;
  }
  if (kind == core::LeverKind::io_class) {
    if (!profile.io_class) return std::nullopt;
    return io_priority_of(*profile.io_class);
  }
  if (kind == core::LeverKind::timer_slack) {
    const auto slack = config_.control.timer_slack;
    if (!slack || !is_engaged_for_dispatch(registration, kind)) return std::nullopt;
    return *core::TimerSlack::make(slack->value());
  }
  if (!profile.nice) return std::nullopt;
  return is_engaged(registration, kind) ? std::min(*profile.nice, config_.control.strong_nice)
                                        : *profile.nice;
}

core::Result<ThreadSummary> Service::apply_threads(Registration& registration, Member& member,
                                                   const ThreadPart& part, const Threads* listed) {
  const auto wish = thread_wish(registration, part.kind);
  if (!wish && (part.kind != core::LeverKind::nice || listed != nullptr)) return ThreadSummary{};
  if (!wish) {
    const auto threads =
        ports_.processes.threads(member.nice.process.pid, config_.limits.max_threads_per_process);
    if (!threads) return tl::unexpected(threads.error());
    member.threads = static_cast<std::uint32_t>(threads->size());
    return ThreadSummary{};
  }
  auto result = part.lever.apply(member.*part.state, registration.id, *wish, listed);
  if (result) member.threads = result->threads;
  return result;
}

/// Lists them once for all.
void Service::look_at_threads(Registration& registration, Member& member) {
  const auto threads =
      ports_.processes.threads(member.nice.process.pid, config_.limits.max_threads_per_process);
  if (threads) member.threads = static_cast<std::uint32_t>(threads->size());
  for (const auto& part : thread_parts())
    member.summaries.insert_or_assign(
        part.kind, threads ? apply_threads(registration, member, part, &*threads)
                           : core::Result<ThreadSummary>(tl::unexpected(threads.error())));
}

/// What need not be in force on the answer to the caller.
void Service::follow_up_threads(Registration& registration) {
  const auto& profile = registration.profile;
  if (profile.scheduling || profile.io_class)
    for (auto& [pid, member] : registration.members) look_at_threads(registration, member);
  threads_status(registration);
}

void Service::hold_nice(Registration& registration) {
  for (auto& [pid, member] : registration.members) {
    const auto result = apply_threads(registration, member, nice_part());
    if (!result && result.error().code != core::ErrorCode::gone &&
        is_engaged(registration, core::LeverKind::nice))
      registration.strong_nice_refused.set(result.error(), ports_.loop.now());
    member.summaries.insert_or_assign(core::LeverKind::nice, result);
  }
  threads_status(registration);
  if (observer_ != nullptr) observer_->on_changed(registration.id);
}

void Service::threads_status(Registration& registration) {
  for (const auto& part : thread_parts())
    if (const auto wish = thread_wish(registration, part.kind))
      thread_status(registration, *wish, part);
}

void Service::thread_status(Registration& registration, const core::LeverValue& wish,
                            const ThreadPart& part) {
  core::LeverStatus status{part.kind, core::Outcome::applied, {}, core::to_string(wish), {}};
  core::Result<ThreadSummary> total = ThreadSummary{};
  std::uint32_t threads = 0;
  for (const auto& [pid, member] : registration.members) {
    threads += member.threads;
    if (const auto one = member.summaries.find(part.kind); one != member.summaries.end())
      add_to(total, one->second);
  }
  if (!total) {
    status.outcome = core::outcome_of(total.error());
    status.detail = core::to_sentence(total.error());
    return set_status(registration, std::move(status));
  }
  status.target = std::to_string(threads) + (threads == 1 ? " thread" : " threads");
  status.detail = core::reach_of(part.kind, registration.placement).explanation;
  if (dry_run_) status.outcome = core::Outcome::dry_run;
  if (total->contended > 0) {
    status.detail = std::to_string(total->contended) +
                    " threads were set by somebody else and are left alone; " + status.detail;
    if (total->applied == 0) status.outcome = core::Outcome::contended;
  }
  set_status(registration, std::move(status));
}

void Service::release_member(Registration& registration, Member& member, bool exited) {
  for (const auto& part : thread_parts()) {
    if (!thread_wish(registration, part.kind)) continue;
    if (exited)
      part.lever.release_exited(member.*part.state);
    else
      part.lever.release(member.*part.state);
  }
  if (!exited) await_stragglers();
}

/// A child that is not covered was born with what its parent has.
void Service::disinherit(Registration& registration, const Member& parent, core::Pid child) {
  const auto parts = thread_parts();
  if (std::ranges::none_of(parts, [&](const ThreadPart& part) {
        return (parent.*part.state).inherited.has_value();
      }))
    return;
  if (registration.disinherited.size() >= config_.limits.max_members)
    registration.disinherited.clear();
  registration.disinherited.insert(child);
  for (const auto& part : parts) {
    const auto& state = parent.*part.state;
    if (!state.inherited) continue;
    const Inheritance inheritance{state.ours, *state.inherited, state.since};
    part.lever.disinherit(child, inheritance);
    part.lever.disinherit_descendants(child, inheritance);
  }
}

std::size_t Service::stragglers() {
  std::size_t count = 0;
  for (const auto& part : thread_parts()) count += part.lever.stragglers();
  return count;
}

void Service::await_stragglers() {
  if (stragglers() == 0 || straggler_timer_) return;
  const auto parts = thread_parts();
  std::array<std::size_t, std::tuple_size_v<decltype(thread_parts())>> counts{};
  for (std::size_t i = 0; i < parts.size(); ++i) counts.at(i) = parts.at(i).lever.stragglers();
  straggler_timer_ = ports_.loop.after(kForkTime, [this, counts] {
    straggler_timer_.reset();
    const auto due = thread_parts();
    for (std::size_t i = 0; i < due.size(); ++i) due.at(i).lever.settle_stragglers(counts.at(i));
    await_stragglers();
    finish_stop();
  });
}

}  // namespace apusched::app
