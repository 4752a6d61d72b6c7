// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "ports/power_source.hpp"

namespace apusched::platform {

/// ports::PowerSource over sysfs. These are the files that UPower reads and that
/// power-profiles-daemon writes, so that neither has to run.
class SysfsPower final : public ports::PowerSource {
 public:
  explicit SysfsPower(std::string sysfs_root) : root_(std::move(sysfs_root)) {}
  [[nodiscard]] bool saving() override { return on_battery() || power_saver(); }

  /// A battery of the machine discharges and no mains is there. That of a mouse
  /// (scope "Device") does not count.
  [[nodiscard]] bool on_battery() const;
  /// ACPI platform profile "low-power" or "quiet", or the energy performance preference "power" of
  /// every CPU that has one: what power-profiles-daemon writes for its profile power-saver. Of some
  /// of them it is no profile, but this daemon or somebody else who lowers single CPUs.
  [[nodiscard]] bool power_saver() const;

 private:
  [[nodiscard]] bool all_cpus_save() const;
  [[nodiscard]] std::string word(const std::string& path) const;

  std::string root_;
};

}  // namespace apusched::platform
