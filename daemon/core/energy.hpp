// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/cpu_set.hpp"

/// How the firmware weighs speed against energy on each CPU, and which CPUs may be told to save it.
/// On an APU what they take of the power budget is missing to the GPU.
namespace apusched::core {

/// The words of energy_performance_preference, from fast to saving. amd-pstate and intel_pstate
/// take all of them (linux drivers/cpufreq/amd-pstate.c and intel_pstate.c, energy_perf_strings).
/// `by_driver` is "default": written, it becomes what the driver started with; amd-pstate never
/// reads back that word.
enum class EnergyWord { performance, balance_performance, by_driver, balance_power, power };
[[nodiscard]] std::string_view to_string(EnergyWord word);

/// A word, or with intel_pstate and newer kernels' amd-pstate ("Add support for raw EPP writes") a
/// number from 0 to 255: the kernel answers in the form that was written last. A word and the
/// number it stands for are two values, so that what is restored reads as it did before.
class EnergyPreference {
 public:
  /// Every word is a preference: not explicit.
  constexpr EnergyPreference(EnergyWord word) : value_(word_value(word)), word_(word) {}
  /// A word or a number and nothing else; amd-pstate's "dynamic(profile:…)", with which the driver
  /// changes it by itself, is none.
  [[nodiscard]] static std::optional<EnergyPreference> parse(std::string_view text);
  [[nodiscard]] std::string text() const;
  /// 0: all for speed, 255: all for energy. What words stand for in amd-pstate; "default" there is
  /// balance_performance, but on servers.
  [[nodiscard]] constexpr std::uint8_t value() const { return value_; }
  [[nodiscard]] constexpr bool saves_more_than(const EnergyPreference& other) const {
    return value_ > other.value_;
  }
  constexpr bool operator==(const EnergyPreference&) const = default;

 private:
  explicit constexpr EnergyPreference(std::uint8_t number) : value_(number) {}
  [[nodiscard]] static constexpr std::uint8_t word_value(EnergyWord word) {
    switch (word) {
      case EnergyWord::performance:
        return 0;
      case EnergyWord::balance_performance:
      case EnergyWord::by_driver:
        return 0x80;
      case EnergyWord::balance_power:
        return 0xbf;
      case EnergyWord::power:
        return 0xff;
    }
    return 0;
  }
  std::uint8_t value_;
  std::optional<EnergyWord> word_;  ///< nothing: a number
};
[[nodiscard]] std::string to_string(const EnergyPreference& preference);

/// What CPUs with background work only get while a dispatch target is missed.
enum class EnergySaving { off, balance_power, power };
[[nodiscard]] std::string_view to_string(EnergySaving saving);
/// Nothing for `off`.
[[nodiscard]] std::optional<EnergyPreference> preference_of(EnergySaving saving);

/// CPUs that share one setting: on an APU each has a policy of its own.
struct EnergyPolicy {
  std::string name;  ///< "policy4"
  CpuSet cpus;       ///< those online
  EnergyPreference preference = EnergyWord::by_driver;
  std::vector<EnergyPreference> choices;  ///< empty: not told

  [[nodiscard]] bool takes(const EnergyPreference& wish) const;
};

/// Where registered processes may run.
struct CpuUse {
  CpuSet background;  ///< those of the background class
  CpuSet working;     ///< those of them that have worked lately
  CpuSet others;      ///< all others
};

struct Lowerable {
  std::map<std::string, CpuSet> policies;  ///< by name
  std::string why_none;                    ///< a sentence, where there is none
};
/// Policies of which every CPU is background's and nobody else's. `ours`: those that are lowered
/// already. `left_alone`: with why. As long as somebody else's CPU saves less than `wish`, or none:
/// where all CPUs save that much, it is a person who wants them to.
[[nodiscard]] Lowerable lowerable(const std::vector<EnergyPolicy>& policies, const CpuUse& use,
                                  const EnergyPreference& wish, const std::set<std::string>& ours,
                                  const std::map<std::string, std::string>& left_alone);

}  // namespace apusched::core
