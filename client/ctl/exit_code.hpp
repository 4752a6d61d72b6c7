// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace apusched::ctl {

/// What apuschedctl(1) promises; scripts depend on the numbers.
enum class ExitCode : int {
  ok = 0,
  refused = 1,                ///< the daemon refused the request or could not do it
  usage = 2,                  ///< wrong command line
  unreachable = 3,            ///< no bus, no daemon, or no answer
  denied = 4,                 ///< the caller may not do this
  not_found = 5,              ///< no such process or registration
  command_not_started = 126,  ///< of `run`, as env(1) and sh(1) have it
  command_not_found = 127,
};

/// Why a command ended; `sentence` is for people.
struct Failure {
  ExitCode code = ExitCode::refused;
  std::string sentence;
  bool operator==(const Failure&) const = default;
};

template <typename T>
using Outcome = tl::expected<T, Failure>;

}  // namespace apusched::ctl
