// SPDX-License-Identifier: MIT
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

/// Which units may be stopped for a part of the time, for the sake of somebody who waits.
namespace apusched::core {

/// A process in a unit, by the kernel's short name (comm, at most 15 bytes).
struct UnitProcess {
  Pid pid;
  std::string name;
  bool operator==(const UnitProcess&) const = default;
};

/// The service or scope that a cgroup v2 path leads to or through, the innermost one, e.g.
/// "/user.slice/…/app.slice/app-indexer.scope"; empty where there is none.
[[nodiscard]] std::string unit_path_of(std::string_view path);
/// "app-indexer.scope"
[[nodiscard]] std::string_view unit_name_of(std::string_view unit_path);

/// A sentence; empty: it may be stopped. That takes a unit of which every process is in
/// `background` (registered as such), and none that others wait for whatever it is registered as:
/// the bus, the session, the display, the sound, the daemon itself.
[[nodiscard]] std::string why_not_frozen(std::string_view unit_path,
                                         const std::vector<UnitProcess>& inside,
                                         const std::set<Pid>& background);

}  // namespace apusched::core
