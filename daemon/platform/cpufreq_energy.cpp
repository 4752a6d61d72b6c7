// SPDX-License-Identifier: MIT
#include "platform/cpufreq_energy.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "core/bounded.hpp"
#include "platform/small_file.hpp"

namespace apusched::platform {
namespace {

constexpr const char* kCpufreqFolder = "devices/system/cpu/cpufreq/";
constexpr std::string_view kPolicyPrefix = "policy";
constexpr const char* kEnergyFile = "energy_performance_preference";
constexpr const char* kEnergyChoices = "energy_performance_available_preferences";
/// A hostile tree may have more; a real one has a policy for each CPU and a few files beside.
constexpr std::size_t kMostPolicyEntries = 2 * core::kMostCpus;
constexpr std::size_t kLongestPreference = 64;
constexpr std::size_t kLongestChoices = 256;
/// Of kMostCpus numbers.
constexpr std::size_t kLongestCpus = 8192;

std::optional<std::int64_t> policy_number(std::string_view name) {
  if (!name.starts_with(kPolicyPrefix)) return std::nullopt;
  const auto digits = name.substr(kPolicyPrefix.size());
  const auto number = core::parse_integer(digits);
  const bool good = number && *number >= 0 &&
                    *number < static_cast<std::int64_t>(core::kMostCpus) &&
                    std::to_string(*number) == digits;
  return good ? number : std::nullopt;
}

std::string_view first_line(std::string_view text) {
  return text.substr(0, text.find('\n'));
}

/// amd-pstate lists "custom" and "dynamic" too in newer kernels: no words to be written.
std::vector<core::EnergyPreference> choices_in(std::string_view text) {
  std::vector<core::EnergyPreference> choices;
  text = first_line(text);
  while (!text.empty()) {
    const auto end = text.find(' ');
    if (const auto choice = core::EnergyPreference::parse(text.substr(0, end)))
      choices.push_back(*choice);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return choices;
}

/// For a policy without CPUs online the kernel answers EBUSY to everything (linux
/// drivers/cpufreq/cpufreq.c, show and store). The preference outlives that: amd-pstate puts it in
/// force again with the first CPU that comes back, so that it has to be restored then.
core::Error refused_reading(core::Error error, const std::string& path) {
  if (error.code != core::ErrorCode::failed) return error;
  return {core::ErrorCode::failed, "read", path, error.detail + ": are its CPUs offline?"};
}

}  // namespace

std::vector<std::string> cpufreq_policies(const std::string& sysfs_root) {
  std::set<std::int64_t> numbers;
  std::error_code error;
  std::filesystem::directory_iterator entry(sysfs_root + "/" + kCpufreqFolder, error);
  for (std::size_t seen = 0;
       !error && entry != std::filesystem::directory_iterator() && seen < kMostPolicyEntries;
       entry.increment(error), ++seen)
    if (const auto number = policy_number(entry->path().filename().string()))
      numbers.insert(*number);
  std::vector<std::string> names;
  for (const auto number : numbers)
    names.push_back(std::string(kPolicyPrefix) + std::to_string(number));
  return names;
}

std::string energy_file(const std::string& policy) {
  return kCpufreqFolder + policy + "/" + kEnergyFile;
}

std::string CpufreqEnergy::path(const std::string& policy, const char* file) const {
  return root_ + "/" + kCpufreqFolder + policy + "/" + file;
}

std::string CpufreqEnergy::why_none(const std::string& policy) const {
  constexpr const char* kHow =
      "; amd-pstate has one in its active mode (kernel parameter amd_pstate=active)";
  if (policy.empty()) return std::string("the kernel does not control CPU frequencies") + kHow;
  const auto text = read_small_file(path(policy, "scaling_driver"), kLongestPreference);
  const auto driver = text ? std::string(first_line(*text)) : std::string();
  const bool plain =
      !driver.empty() && std::ranges::all_of(driver, [](char c) { return c > ' ' && c <= '~'; });
  return "the CPU frequency driver" + (plain ? " " + driver : std::string()) +
         " has no energy performance preference that can be read" + kHow;
}

core::Result<std::vector<core::EnergyPolicy>> CpufreqEnergy::policies() {
  std::vector<core::EnergyPolicy> result;
  const auto names = cpufreq_policies(root_);
  for (const auto& name : names) {
    const auto text = read_small_file(path(name, "affected_cpus"), kLongestCpus);
    const auto cpus = text ? core::parse_cpu_numbers(*text) : std::nullopt;
    if (!cpus) continue;
    const auto preference = read(name);
    if (!preference) continue;
    const auto choices = read_small_file(path(name, kEnergyChoices), kLongestChoices);
    result.push_back({name, *cpus, *preference,
                      choices ? choices_in(*choices) : std::vector<core::EnergyPreference>()});
  }
  if (result.empty())
    return core::fail(core::ErrorCode::unsupported, "find", root_ + "/" + kCpufreqFolder,
                      why_none(names.empty() ? std::string() : names.front()));
  return result;
}

core::Result<core::EnergyPreference> CpufreqEnergy::read(const std::string& policy) {
  const auto file = path(policy, kEnergyFile);
  if (!policy_number(policy))
    return core::fail(core::ErrorCode::invalid_input, "read", file, "not a policy");
  const auto text = read_small_file(file, kLongestPreference);
  if (!text) return tl::unexpected(refused_reading(text.error(), file));
  const auto preference = core::EnergyPreference::parse(first_line(*text));
  if (!preference)
    return core::fail(core::ErrorCode::unsupported, "read", file, "not a preference that is known");
  return *preference;
}

/// EBUSY: the governor is performance, which allows no other preference (linux
/// drivers/cpufreq/amd-pstate.c, amd_pstate_set_energy_pref_index; intel_pstate.c, the same in
/// store_energy_performance_preference), or the driver chooses it ("dynamic EPP").
core::Result<void> CpufreqEnergy::write(const std::string& policy,
                                        const core::EnergyPreference& preference) {
  const auto file = path(policy, kEnergyFile);
  if (!policy_number(policy))
    return core::fail(core::ErrorCode::invalid_input, "write", file, "not a policy");
  auto written = write_small_file(file, preference.text() + "\n");
  if (!written && written.error().code == core::ErrorCode::failed)
    return core::fail(core::ErrorCode::unsupported, "write", file,
                      written.error().detail +
                          ": the scaling governor is performance, or the driver chooses by itself");
  return written;
}

}  // namespace apusched::platform
