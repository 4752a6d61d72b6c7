// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/thread_nice.hpp"
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
  NiceState nice;
  std::uint32_t threads = 0;
  std::uint64_t activity = 0;
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
  std::vector<std::string> engaged;  ///< levers that are held more strongly now
  core::Result<NiceSummary> at_admission = NiceSummary{};  ///< told after the caller's answer
};

}  // namespace apusched::app
