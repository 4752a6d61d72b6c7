// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ports/cpu_energy.hpp"

namespace apusched::platform {

/// Names of the directories of cpufreq policies below `sysfs_root`, at most core::kMostCpus, in the
/// order of their numbers.
[[nodiscard]] std::vector<std::string> cpufreq_policies(const std::string& sysfs_root);
/// Below the root of sysfs.
[[nodiscard]] std::string energy_file(const std::string& policy);

/// ports::CpuEnergy over cpufreq in sysfs. amd-pstate has the files in its active mode alone, and
/// not in passive and guided (linux drivers/cpufreq/amd-pstate.c, amd_pstate_attr against
/// amd_pstate_epp_attr). Stateless.
class CpufreqEnergy final : public ports::CpuEnergy {
 public:
  explicit CpufreqEnergy(std::string sysfs_root) : root_(std::move(sysfs_root)) {}
  [[nodiscard]] core::Result<std::vector<core::EnergyPolicy>> policies() override;
  [[nodiscard]] core::Result<core::EnergyPreference> read(const std::string& policy) override;
  [[nodiscard]] core::Result<void> write(const std::string& policy,
                                         const core::EnergyPreference& preference) override;

 private:
  [[nodiscard]] std::string path(const std::string& policy, const char* file) const;
  [[nodiscard]] std::string why_none(const std::string& policy) const;

  std::string root_;
};

}  // namespace apusched::platform
