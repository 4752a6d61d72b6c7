// SPDX-License-Identifier: MIT
#include "platform/sysfs_power.hpp"

#include <filesystem>
#include <system_error>

#include "platform/cpufreq_energy.hpp"
#include "platform/small_file.hpp"

namespace apusched::platform {
namespace {

constexpr std::size_t kLongestWord = 64;
/// More supplies than that are none of a real machine.
constexpr int kMostSupplies = 32;

}  // namespace

std::string SysfsPower::word(const std::string& path) const {
  auto text = read_small_file(root_ + "/" + path, kLongestWord);
  if (!text) return {};
  return text->substr(0, text->find('\n'));
}

bool SysfsPower::on_battery() const {
  std::error_code error;
  const std::string where = "class/power_supply";
  std::filesystem::directory_iterator entry(root_ + "/" + where, error);
  bool discharging = false;
  for (int seen = 0;
       !error && entry != std::filesystem::directory_iterator() && seen < kMostSupplies;
       entry.increment(error), ++seen) {
    const auto supply = where + "/" + entry->path().filename().string();
    const auto type = word(supply + "/type");
    if (type == "Battery")
      discharging |=
          word(supply + "/scope") != "Device" && word(supply + "/status") == "Discharging";
    else if (word(supply + "/online") == "1")
      return false;
  }
  return discharging;
}

bool SysfsPower::power_saver() const {
  const auto profile = word("firmware/acpi/platform_profile");
  return profile == "low-power" || profile == "quiet" || all_cpus_save();
}

bool SysfsPower::all_cpus_save() const {
  bool some = false;
  for (const auto& policy : cpufreq_policies(root_)) {
    const auto preference = word(energy_file(policy));
    if (preference.empty()) continue;
    if (preference != "power") return false;
    some = true;
  }
  return some;
}

}  // namespace apusched::platform
