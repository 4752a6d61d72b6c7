// SPDX-License-Identifier: MIT
#pragma once

namespace apusched::ports {

/// Whether the machine is to save power. Event-loop thread.
class PowerSource {
 public:
  virtual ~PowerSource() = default;
  /// On battery, or with a power-saving profile. False where that cannot be known.
  [[nodiscard]] virtual bool saving() = 0;
};

}  // namespace apusched::ports
