// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ports/cpu_energy.hpp"

namespace apusched::doubles {

/// Policies of a test's own, one CPU each.
class FakeCpuEnergy final : public ports::CpuEnergy {
 public:
  core::Result<std::vector<core::EnergyPolicy>> policies() override {
    ++looks;
    std::vector<core::EnergyPolicy> result;
    for (const auto& [cpu, preference] : preferences)
      if (!offline.contains(cpu))
        result.push_back({name(cpu), core::CpuSet().set(cpu), preference, choices});
    if (result.empty())
      return core::fail(core::ErrorCode::unsupported, "find", "policies",
                        "the CPU frequency driver has no energy performance preference");
    return result;
  }
  core::Result<core::EnergyPreference> read(const std::string& policy) override {
    for (const auto& [cpu, preference] : preferences) {
      if (name(cpu) != policy) continue;
      if (offline.contains(cpu))
        return core::fail(core::ErrorCode::failed, "read", policy, "its CPU is offline");
      return preference;
    }
    return core::fail(core::ErrorCode::gone, "read", policy, "no such policy");
  }
  core::Result<void> write(const std::string& policy,
                           const core::EnergyPreference& preference) override {
    if (refusal) return tl::unexpected(*refusal);
    log.push_back(policy + " " + preference.text());
    for (auto& [cpu, present] : preferences)
      if (name(cpu) == policy) present = preference;
    return {};
  }
  static std::string name(std::size_t cpu) { return "policy" + std::to_string(cpu); }
  [[nodiscard]] std::string of(std::size_t cpu) const { return preferences.at(cpu).text(); }

  std::map<std::size_t, core::EnergyPreference> preferences;  ///< by CPU
  std::set<std::size_t> offline;
  std::vector<core::EnergyPreference> choices;
  std::optional<core::Error> refusal;  ///< of writing
  std::vector<std::string> log;
  int looks = 0;
};

}  // namespace apusched::doubles
