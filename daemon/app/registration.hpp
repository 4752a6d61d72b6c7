// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/refusal.hpp"
#include "app/thread_lever.hpp"
#include "core/config.hpp"
#include "core/lever.hpp"
#include "core/placement.hpp"
#include "ports/event_loop.hpp"
#include "ports/processes.hpp"

namespace apusched::app {

/// One process covered by a registration: the registered one, or a descendant of it.
struct Member {
  std::unique_ptr<ports::ProcessHandle> handle;
  std::unique_ptr<ports::Subscription> exit_watch;
  ThreadState nice;
  ThreadState scheduling;
  ThreadState io;
  ThreadState slack;
  std::uint32_t threads = 0;
  /// At the last look, of each value that the profile sets.
  std::map<core::LeverKind, core::Result<ThreadSummary>> summaries = {};
  std::uint64_t activity = 0;                   ///< at the last scan
  std::uint64_t ran = 0;                        ///< between the last two scans, ns
  std::optional<std::uint64_t> looked_at = {};  ///< activity before the last look
  std::uint32_t rests = 0;                      ///< scans since then
};

/// One registration. Owner: app::Service.
struct Registration {
  core::RegistrationId id;
  core::ProcessKey key;
  core::Profile profile;   ///< with the caller's overrides
  std::string executable;  ///< this and `uid` are read right after the caller's answer
  std::uint32_t uid = 0;
  std::string source;
  std::string unit;
  core::Placement placement;
  bool expects_agent = false;  ///< it was started with the agent
  std::map<core::Pid, Member> members;
  std::set<core::Pid> disinherited;  ///< children put back once; a later renice is theirs
  std::set<std::string> gpus;        ///< PCI addresses with queues of a member
  std::map<core::LeverKind, core::LeverStatus> levers;
  std::vector<std::string> engaged;     ///< levers that are held more strongly now
  std::set<std::string> slices = {};    ///< above its unit, whose weight is held
  std::set<std::string> raisable = {};  ///< whose weight may be held, as last seen
  Refusal strong_nice_refused = {};
  Refusal slack_refused = {};
  std::vector<std::string> engaged_for_dispatch = {};  ///< what is held for its dispatch target
};

/// Between the last two scans, on CPUs, all members together.
[[nodiscard]] inline std::chrono::nanoseconds ran_lately(const Registration& registration) {
  std::uint64_t ran = 0;
  for (const auto& [pid, member] : registration.members) ran += member.ran;
  return std::chrono::nanoseconds(ran);
}

/// It works when its threads ran for more than a thousandth of the time between two scans: one that
/// waits for requests wakes up now and then, too.
[[nodiscard]] inline bool works(const Registration& registration, const core::Limits& limits) {
  constexpr int kIdleShare = 1000;
  return ran_lately(registration) > std::chrono::nanoseconds(limits.scan_interval) / kIdleShare;
}

[[nodiscard]] inline bool is_engaged_for_dispatch(const Registration& registration,
                                                  core::LeverKind kind) {
  return std::ranges::find(registration.engaged_for_dispatch, core::to_string(kind)) !=
         registration.engaged_for_dispatch.end();
}

[[nodiscard]] inline bool is_engaged(const Registration& registration, core::LeverKind kind) {
  return std::ranges::find(registration.engaged, core::to_string(kind)) !=
         registration.engaged.end();
}

}  // namespace apusched::app
