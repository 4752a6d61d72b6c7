// SPDX-License-Identifier: MIT
#include "core/gpu_pressure.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace apusched::core {
namespace {

constexpr std::uint32_t kWhole = 100;
constexpr std::string_view kPriority = "queue_priority";
constexpr std::string_view kGate = "gate";
/// Everything for processes of one class, divided between them.
constexpr std::string_view kFair = "cu_fair";
struct ShareRung {
  std::string_view name;
  std::uint32_t percent;
};
/// What a decode loop with small kernels needs is little, and the others lose little by it.
constexpr std::array kShares{ShareRung{"cu_share_25", 25}, ShareRung{"cu_share_50", 50},
                             ShareRung{"cu_share_75", 75}};
/// A change unmaps queues and maps them again; measured until the masks of two agents were in
/// force: p50 17 ms, at most 70 ms.
constexpr Moment kMaskSettles{200};
constexpr Moment kGateSettles{200};

bool gives_way(const GpuParty& party, const GpuParty& to) {
  return party.id != to.id && party.work_class < to.work_class;
}
bool is_equal(const GpuParty& party, const GpuParty& to) {
  return party.id != to.id && party.work_class == to.work_class;
}

Rung rung_of(std::string_view name, Moment settle, const std::string& why_not) {
  return {std::string(name), why_not.empty(), why_not, true, settle, 0};
}

template <typename Can>
std::string why_nobody(const std::vector<GpuParty>& parties, const GpuParty& of, Can can) {
  bool some = false;
  for (const auto& party : parties) {
    if (!gives_way(party, of)) continue;
    if (can(party)) return {};
    some = true;
  }
  return some ? "the agents of the others cannot set it"
              : "no process of a lower class with an agent is on this GPU";
}

std::uint32_t scaled(double share, std::uint32_t total) {
  return std::clamp(static_cast<std::uint32_t>(std::lround(share * total)), 1U, CuWeight::kMax);
}

/// Twice as busy is worth twice as much, in steps, and so is what waits in front of it: a plan that
/// follows every fluctuation maps queues all the time.
double demand_of(const GpuParty& party) {
  constexpr std::uint32_t kNormal = 100;
  constexpr double kBusy = 0.6;
  constexpr double kSlack = 0.2;
  const double step = party.busy >= kBusy ? 4 : party.busy >= kSlack ? 2 : 1;
  return step * (party.behind ? 2 : 1) * party.weight.value_or(CuWeight::of<kNormal>()).value();
}

}  // namespace

bool priority_acts_between_processes(std::string_view isa) {
  constexpr std::string_view kPrefix = "gfx";
  if (!isa.starts_with(kPrefix)) return false;
  isa.remove_prefix(kPrefix.size());
  // "902", "90c", "942": gfx9 has three places, later ones four, of which two are the generation
  return (isa.size() == 3 && isa.starts_with("9")) || (isa.size() == 4 && isa.starts_with("10"));
}

std::vector<Rung> gpu_rungs(const std::vector<GpuParty>& parties, const GpuParty& of,
                            bool priority_acts) {
  std::vector<Rung> rungs;
  auto why = why_nobody(parties, of, [](const GpuParty& p) { return p.can_prioritise; });
  if (!priority_acts)
    why = "on this GPU the priority of a queue counts within its own process only";
  else if (why.empty() && std::ranges::all_of(parties, [&](const GpuParty& p) {
             return !gives_way(p, of) || !p.can_prioritise || p.low_already;
           }))
    why = "the queues of the others have the lowest priority already";
  rungs.push_back(rung_of(kPriority, kMaskSettles, why));
  why = why_nobody(parties, of, [](const GpuParty& p) { return p.can_mask; });
  if (!of.can_mask) why = "the agent in the process cannot set CU masks";
  for (const auto& share : kShares) rungs.push_back(rung_of(share.name, kMaskSettles, why));
  const bool equals = std::ranges::any_of(
      parties, [&](const GpuParty& p) { return is_equal(p, of) && p.can_mask; });
  rungs.push_back(rung_of(kFair, kMaskSettles,
                          why.empty()             ? "others give way instead"
                          : equals && of.can_mask ? ""
                                                  : "no process of the same class is on this GPU"));
  why = why_nobody(parties, of, [](const GpuParty& p) { return p.can_gate; });
  rungs.push_back(rung_of(kGate, kGateSettles, why));
  return rungs;
}

GpuPressure pressure_of(const std::vector<std::string>& engaged, WorkClass protects) {
  GpuPressure pressure{protects, false, {}, false};
  const auto has = [&](std::string_view name) {
    return std::ranges::find(engaged, name) != engaged.end();
  };
  pressure.lower_priority = has(kPriority);
  pressure.gate = has(kGate);
  for (const auto& share : kShares)
    if (has(share.name)) pressure.share = Percent::make(share.percent);
  if (has(kFair) && !pressure.share) pressure.share = Percent::of<kWhole>();
  return pressure;
}

GpuPressure stronger(const GpuPressure& a, const GpuPressure& b) {
  if (a.protects != b.protects) return a.protects > b.protects ? a : b;
  return {a.protects, a.lower_priority || b.lower_priority, std::max(a.share, b.share),
          a.gate || b.gate};
}

double rivalry(const std::vector<GpuParty>& parties, const GpuParty& of) {
  double rival = 0;
  for (const auto& party : parties)
    if (gives_way(party, of) || is_equal(party, of)) rival = std::max(rival, party.busy);
  return std::clamp(rival, 0.0, 1.0);
}

std::vector<CuDemand> demands_under(const std::vector<GpuParty>& parties,
                                    const std::optional<GpuPressure>& pressure) {
  const auto none = CuWeight::of<kWhole>();
  std::vector<CuDemand> demands;
  double protected_demand = 0;
  std::uint32_t others = 0;
  for (const auto& party : parties) {
    if (!pressure || !pressure->share || !party.can_mask) continue;
    if (party.work_class >= pressure->protects)
      protected_demand += demand_of(party);
    else
      ++others;
  }
  for (const auto& party : parties) {
    if (protected_demand <= 0) {
      if (party.weight || party.limit)
        demands.push_back(
            {party.id, party.weight.value_or(none), party.exclusive && party.weight, party.limit});
      continue;
    }
    if (!party.can_mask) continue;
    const double share = pressure->share->value();
    const bool is_protected = party.work_class >= pressure->protects;
    const double part =
        is_protected ? share * demand_of(party) / protected_demand : (kWhole - share) / others;
    demands.push_back({party.id, *CuWeight::make(scaled(part / kWhole, CuWeight::kMax)),
                       is_protected, party.limit});
  }
  return demands;
}

}  // namespace apusched::core
