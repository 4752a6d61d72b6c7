// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <string>

#include "core/result.hpp"
#include "core/types.hpp"

namespace apusched::ports {

/// An idle state of a CPU.
struct IdleState {
  std::string name;
  std::chrono::microseconds exit{0};  ///< how long it takes to leave it, as the kernel reckons
};

/// How long an idle CPU may take to wake up. Event-loop thread.
class IdleLatency {
 public:
  virtual ~IdleLatency() = default;
  /// On the whole machine, until `release` or the end of this process; again: replaces it. Others
  /// may ask for less.
  [[nodiscard]] virtual core::Result<void> limit(core::IdleLimit limit) = 0;
  virtual void release() = 0;
  /// The one that takes longest to leave, of those that may be entered; `unsupported` where the
  /// kernel has none to choose from.
  [[nodiscard]] virtual core::Result<IdleState> deepest() = 0;
};

}  // namespace apusched::ports
