// SPDX-License-Identifier: MIT
#include "freezer/duty_cycles.hpp"

#include <algorithm>

namespace apusched::freezer {
namespace {

constexpr std::int64_t kWhole = 100;

Moment frozen_part(core::FrozenShare share) {
  return kPeriod * std::int64_t{share.value()} / kWhole;
}

}  // namespace

void DutyCycles::set(const std::string& path, core::FrozenShare share, Moment now) {
  const auto found = units_.find(path);
  if (share.value() == 0) {
    if (found != units_.end()) found->second.ending = true;
    return;
  }
  if (found == units_.end()) {
    units_.emplace(path, Unit{share, now + kLease, now + kPeriod - frozen_part(share)});
    return;
  }
  found->second.share = share;
  found->second.lease_ends = now + kLease;
  found->second.ending = false;
}

std::vector<DutyCycles::Step> DutyCycles::due(Moment now) {
  std::vector<Step> steps;
  for (auto item = units_.begin(); item != units_.end();) {
    auto& [path, unit] = *item;
    if (unit.ending || unit.lease_ends <= now) {
      if (unit.frozen) steps.push_back({path, false});
      item = units_.erase(item);
      continue;
    }
    if (unit.turn <= now) {
      unit.frozen = !unit.frozen;
      const auto part = frozen_part(unit.share);
      unit.turn = now + (unit.frozen ? part : kPeriod - part);
      steps.push_back({path, unit.frozen});
    }
    ++item;
  }
  return steps;
}

std::optional<Moment> DutyCycles::next() const {
  std::optional<Moment> first;
  for (const auto& [path, unit] : units_) {
    const auto turn = unit.ending ? Moment{0} : std::min(unit.turn, unit.lease_ends);
    if (!first || turn < *first) first = turn;
  }
  return first;
}

std::vector<std::string> DutyCycles::frozen() const {
  std::vector<std::string> paths;
  for (const auto& [path, unit] : units_)
    if (unit.frozen) paths.push_back(path);
  return paths;
}

}  // namespace apusched::freezer
