// SPDX-License-Identifier: MIT
#include "core/energy.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/bounded.hpp"

namespace apusched::core {
namespace {

constexpr std::array<std::pair<EnergyWord, std::string_view>, 5> kEnergyWords{{
    {EnergyWord::performance, "performance"},
    {EnergyWord::balance_performance, "balance_performance"},
    {EnergyWord::by_driver, "default"},
    {EnergyWord::balance_power, "balance_power"},
    {EnergyWord::power, "power"},
}};
constexpr std::int64_t kMostEnergy = 255;

std::string why_not_lowered(const EnergyPolicy& policy, const EnergyPreference& wish,
                            const std::map<std::string, std::string>& left_alone) {
  if (const auto why = left_alone.find(policy.name); why != left_alone.end())
    return policy.name + ": " + why->second;
  if (!wish.saves_more_than(policy.preference))
    return policy.name + " saves as much energy already";
  if (!policy.takes(wish))
    return policy.name + " does not take " + wish.text() +
           ": with the scaling governor performance it takes no other preference";
  return {};
}

}  // namespace

std::string_view to_string(EnergyWord word) {
  for (const auto& [value, name] : kEnergyWords)
    if (value == word) return name;
  return "?";
}

std::optional<EnergyPreference> EnergyPreference::parse(std::string_view text) {
  for (const auto& [word, name] : kEnergyWords)
    if (name == text) return EnergyPreference(word);
  const auto number = parse_integer(text);
  if (!number || *number < 0 || *number > kMostEnergy) return std::nullopt;
  return EnergyPreference(static_cast<std::uint8_t>(*number));
}

std::string EnergyPreference::text() const {
  return word_ ? std::string(core::to_string(*word_)) : std::to_string(value_);
}

std::string to_string(const EnergyPreference& preference) {
  return preference.text();
}

std::string_view to_string(EnergySaving saving) {
  switch (saving) {
    case EnergySaving::off:
      return "off";
    case EnergySaving::balance_power:
      return "balance_power";
    case EnergySaving::power:
      return "power";
  }
  return "?";
}

std::optional<EnergyPreference> preference_of(EnergySaving saving) {
  switch (saving) {
    case EnergySaving::off:
      break;
    case EnergySaving::balance_power:
      return EnergyPreference(EnergyWord::balance_power);
    case EnergySaving::power:
      return EnergyPreference(EnergyWord::power);
  }
  return std::nullopt;
}

bool EnergyPolicy::takes(const EnergyPreference& wish) const {
  return choices.empty() || std::ranges::find(choices, wish) != choices.end();
}

Lowerable lowerable(const std::vector<EnergyPolicy>& policies, const CpuUse& use,
                    const EnergyPreference& wish, const std::set<std::string>& ours,
                    const std::map<std::string, std::string>& left_alone) {
  Lowerable result;
  std::string why =
      "no CPU runs background work only: divide them, with AllowedCPUs= in the units of background "
      "processes and in those of the others";
  bool others_want_speed = false;
  CpuSet lowered;
  for (const auto& policy : policies) {
    const bool apart = policy.cpus.any() && (policy.cpus & ~use.background).none() &&
                       (policy.cpus & use.others).none();
    auto obstacle =
        ours.contains(policy.name) ? std::string() : why_not_lowered(policy, wish, left_alone);
    if (apart && obstacle.empty()) {
      result.policies.emplace(policy.name, policy.cpus);
      lowered |= policy.cpus;
      continue;
    }
    if (apart) why = std::move(obstacle);
    others_want_speed |= wish.saves_more_than(policy.preference);
  }
  if (result.policies.empty())
    result.why_none = std::move(why);
  else if (!others_want_speed)
    result.why_none = "all other CPUs save as much energy already";
  else if ((lowered & use.working).none())
    result.why_none = "no background process works on CPUs of its own";
  if (!result.why_none.empty()) result.policies.clear();
  return result;
}

}  // namespace apusched::core
