// SPDX-License-Identifier: MIT
#include "core/cu_plan.hpp"

#include <algorithm>
#include <cstddef>

namespace apusched::core {
namespace {

using Units = std::vector<bool>;

struct Share {
  CuDemand demand;
  std::uint32_t units = 1;
  Units had;
};

/// The sharing ones as a whole count as one more party.
constexpr std::size_t kPool = ~std::size_t{0};

CuMask to_mask(const CuGeometry& geometry, const Units& units) {
  CuMask mask;
  const auto size = cus_per_unit(geometry);
  for (std::uint32_t bit = 0; bit < geometry.compute_units; ++bit)
    if (units[std::min<std::size_t>(bit / size, units.size() - 1)]) mask.set(bit);
  return mask;
}

Units to_units(const CuGeometry& geometry, const CuMask& mask) {
  Units units(unit_count(geometry));
  const auto size = cus_per_unit(geometry);
  for (std::size_t unit = 0; unit < units.size(); ++unit)
    units[unit] = mask.test(static_cast<std::uint32_t>(unit) * size);
  return units;
}

std::uint32_t count(const Units& units) {
  return static_cast<std::uint32_t>(std::ranges::count(units, true));
}

/// Largest remainder, everybody at least one. `total` is at least the number of weights.
std::vector<std::uint32_t> divide(std::uint32_t total, const std::vector<std::uint64_t>& weights) {
  std::uint64_t sum = 0;
  for (const auto weight : weights) sum += weight;
  std::vector<std::uint32_t> parts;
  std::vector<std::uint64_t> rest;
  std::uint32_t given = 0;
  for (const auto weight : weights) {
    parts.push_back(std::max(1U, static_cast<std::uint32_t>(total * weight / sum)));
    rest.push_back(total * weight % sum);
    given += parts.back();
  }
  while (given < total) {
    const auto most = static_cast<std::size_t>(std::ranges::max_element(rest) - rest.begin());
    ++parts[most];
    rest[most] = 0;
    ++given;
  }
  // The minimum of one unit may have handed out too much: the largest part can spare it.
  for (; given > total; --given) --*std::ranges::max_element(parts);
  return parts;
}

/// Makes sharing ones of exclusive ones until there is a unit for each party.
void fit(std::vector<Share>& shares, std::uint32_t units) {
  const auto exclusive = [&] {
    return static_cast<std::size_t>(
        std::ranges::count_if(shares, [](const Share& s) { return s.demand.exclusive; }));
  };
  while (exclusive() + (exclusive() < shares.size() ? 1 : 0) > units) {
    Share* lightest = nullptr;
    for (auto& share : shares)
      if (share.demand.exclusive &&
          (lightest == nullptr || share.demand.weight <= lightest->demand.weight))
        lightest = &share;
    lightest->demand.exclusive = false;
  }
}

/// Takes units out of `from`: best those the holder had, then those that nobody had, then one on
/// the array that has fewest of it, then the lowest.
class Picker {
 public:
  Picker(const CuGeometry& geometry, const std::vector<Share>& shares)
      : arrays_(std::max(1U, geometry.arrays_per_engine)), owners_(unit_count(geometry)) {
    for (const auto& share : shares)
      for (std::size_t unit = 0; share.demand.exclusive && unit < owners_.size(); ++unit)
        if (share.had[unit]) ++owners_[unit];
  }

  [[nodiscard]] Units pick(const Units& from, const Units& had, std::uint32_t wanted) const {
    Units taken(from.size());
    std::vector<std::uint32_t> on_array(arrays_);
    for (std::uint32_t n = 0; n < wanted; ++n) {
      const auto unit = best(from, had, taken, on_array);
      if (unit == from.size()) break;
      taken[unit] = true;
      ++on_array[unit % arrays_];
    }
    return taken;
  }

 private:
  [[nodiscard]] std::size_t best(const Units& from, const Units& had, const Units& taken,
                                 const std::vector<std::uint32_t>& on_array) const {
    std::size_t found = from.size();
    for (std::size_t unit = 0; unit < from.size(); ++unit) {
      if (!from[unit] || taken[unit]) continue;
      if (found == from.size()) {
        found = unit;
        continue;
      }
      if (had[unit] != had[found]) {
        if (had[unit]) found = unit;
      } else if (owners_[unit] != owners_[found]) {
        if (owners_[unit] < owners_[found]) found = unit;
      } else if (on_array[unit % arrays_] < on_array[found % arrays_]) {
        found = unit;
      }
    }
    return found;
  }

  std::uint32_t arrays_;
  std::vector<std::uint32_t> owners_;  ///< exclusive ones that had a unit
};

std::uint32_t limit_of(const CuDemand& demand, std::uint32_t units) {
  constexpr std::uint32_t kWhole = 100;
  if (!demand.limit) return units;
  return std::max(1U, units * demand.limit->value() / kWhole);
}

/// Sets the size of each exclusive share; returns the units that are left for the others.
std::uint32_t size_shares(std::vector<Share>& shares, std::uint32_t units) {
  // The sharing ones first: of equal remainders theirs is rounded up. What asks for a quarter of
  // six units needs little, and half a unit more is felt by all the others.
  std::vector<std::uint64_t> weights;
  std::vector<std::size_t> who;
  std::uint64_t pool = 0;
  for (const auto& share : shares)
    if (!share.demand.exclusive) pool += share.demand.weight.value();
  if (pool > 0) {
    weights.push_back(pool);
    who.push_back(kPool);
  }
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (!shares[i].demand.exclusive) continue;
    weights.push_back(shares[i].demand.weight.value());
    who.push_back(i);
  }
  const auto parts = divide(units, weights);
  std::uint32_t left = units;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (who[i] == kPool) continue;
    auto& share = shares[who[i]];
    share.units = std::min(parts[i], limit_of(share.demand, units));
    left -= share.units;
  }
  return left;
}

}  // namespace

std::uint32_t cus_per_unit(const CuGeometry& geometry) {
  const auto engines = std::max(1U, geometry.engines) * std::max(1U, geometry.xccs);
  return std::max(1U, std::min(geometry.compute_units, engines * (geometry.paired ? 2U : 1U)));
}

std::uint32_t unit_count(const CuGeometry& geometry) {
  if (geometry.compute_units == 0) return 0;
  return geometry.compute_units / cus_per_unit(geometry);
}

CuPlan plan_cus(const CuGeometry& geometry, const std::vector<CuDemand>& demands,
                const CuPlan& previous) {
  const auto units = unit_count(geometry);
  CuPlan plan;
  if (units == 0 || demands.empty()) return plan;
  std::vector<Share> shares;
  for (const auto& demand : demands) {
    const auto before = previous.find(demand.holder);
    shares.push_back(
        {demand, 1, before == previous.end() ? Units(units) : to_units(geometry, before->second)});
    // A full mask is no preference for any unit.
    if (count(shares.back().had) == units) shares.back().had.assign(units, false);
  }
  fit(shares, units);
  static_cast<void>(size_shares(shares, units));
  const Picker picker(geometry, shares);
  Units free(units, true);
  // Who had units chooses first: else a newcomer would take what others could keep.
  std::ranges::stable_sort(shares, [](const Share& a, const Share& b) {
    return (count(a.had) > 0) > (count(b.had) > 0);
  });
  for (const auto& share : shares) {
    if (!share.demand.exclusive) continue;
    const auto taken = picker.pick(free, share.had, share.units);
    for (std::size_t unit = 0; unit < units; ++unit)
      if (taken[unit]) free[unit] = false;
    plan.emplace(share.demand.holder, to_mask(geometry, taken));
  }
  for (const auto& share : shares) {
    if (share.demand.exclusive) continue;
    const auto wanted = std::min(count(free), limit_of(share.demand, units));
    plan.emplace(share.demand.holder, to_mask(geometry, picker.pick(free, share.had, wanted)));
  }
  return plan;
}

}  // namespace apusched::core
