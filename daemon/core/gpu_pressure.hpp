// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/control.hpp"
#include "core/cu_plan.hpp"
#include "core/types.hpp"

/// What one process that misses its target asks of the others on its GPU.
namespace apusched::core {

/// What is in force on one GPU for the sake of processes of a class. Those of lower classes with an
/// agent in them give way; those without are out of reach.
struct GpuPressure {
  WorkClass protects = WorkClass::critical;
  bool lower_priority = false;   ///< queues of the others get the lowest priority
  std::optional<Percent> share;  ///< of the CUs, for those protected alone
  bool gate = false;             ///< submissions of the others wait half of the time

  bool operator==(const GpuPressure&) const = default;
};

/// One registration on one GPU, as far as dividing it goes.
struct GpuParty {
  RegistrationId id;
  WorkClass work_class = WorkClass::interactive;
  std::optional<CuWeight> weight;
  bool exclusive = false;
  std::optional<Percent> limit;
  double busy = 0;      ///< share of the time in which it has packets waiting, 0..1
  bool behind = false;  ///< more work waits than the GPU gets done soon
  bool can_mask = false;
  bool can_prioritise = false;
  bool can_gate = false;
  bool low_already = false;  ///< its queues have the lowest priority anyway

  bool operator==(const GpuParty&) const = default;
};

/// From gfx11 on queues are scheduled by MES, which promises priorities within a process only.
/// False for an ISA that is not understood.
[[nodiscard]] bool priority_acts_between_processes(std::string_view isa);

/// Rungs for the party `of`, cheapest first. Where one cannot act, it says why.
/// `priority_acts`: between processes, which the firmware scheduler (MES, gfx11 and later) does not
/// promise.
[[nodiscard]] std::vector<Rung> gpu_rungs(const std::vector<GpuParty>& parties, const GpuParty& of,
                                          bool priority_acts);
/// The strongest of each kind of rung counts.
[[nodiscard]] GpuPressure pressure_of(const std::vector<std::string>& engaged, WorkClass protects);
/// Two on one GPU: the one that protects the higher class; of the same class the stronger of each.
[[nodiscard]] GpuPressure stronger(const GpuPressure& a, const GpuPressure& b);
/// Share of the time in which others than `of` have work waiting that could give way, 0..1.
[[nodiscard]] double rivalry(const std::vector<GpuParty>& parties, const GpuParty& of);
/// Who asks for which CUs. Without pressure: those whose profile says so. With a share: those
/// protected get it between them, by weight and by how busy they are, and the others the rest.
[[nodiscard]] std::vector<CuDemand> demands_under(const std::vector<GpuParty>& parties,
                                                  const std::optional<GpuPressure>& pressure);

}  // namespace apusched::core
