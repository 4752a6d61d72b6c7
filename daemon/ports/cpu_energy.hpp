// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "core/energy.hpp"
#include "core/result.hpp"

namespace apusched::ports {

/// The energy performance preference of CPUs, by cpufreq policy. All calls are synchronous and take
/// microseconds. Event-loop thread.
class CpuEnergy {
 public:
  virtual ~CpuEnergy() = default;
  /// Those with CPUs online and a preference that can be read; `unsupported`, with why, where there
  /// is none.
  [[nodiscard]] virtual core::Result<std::vector<core::EnergyPolicy>> policies() = 0;
  /// `gone`: there is no such policy, or it has no preference any more. Another error may end by
  /// itself: CPUs that are offline come back.
  [[nodiscard]] virtual core::Result<core::EnergyPreference> read(const std::string& policy) = 0;
  /// `unsupported`: the kernel does not take it now.
  [[nodiscard]] virtual core::Result<void> write(const std::string& policy,
                                                 const core::EnergyPreference& preference) = 0;
};

}  // namespace apusched::ports
