// SPDX-License-Identifier: MIT
#include "core/lever.hpp"

#include <array>

namespace apusched::core {
namespace {

constexpr std::string_view kUnset = "unset";

int clock_rank(PerformanceLevel level) {
  switch (level) {
    case PerformanceLevel::low:
    case PerformanceLevel::profile_min_sclk:
    case PerformanceLevel::profile_min_mclk:
      return 0;
    case PerformanceLevel::automatic:
      return 1;
    case PerformanceLevel::manual:
    case PerformanceLevel::perf_determinism:
    case PerformanceLevel::profile_standard:
      return 2;
    case PerformanceLevel::profile_peak:
      return 3;
    case PerformanceLevel::high:
      return 4;
  }
  return 1;
}

int io_rank(const IoPriority& priority) {
  switch (priority.io_class) {
    case IoClass::idle:
      return 0;
    case IoClass::none:
    case IoClass::best_effort:
      return 1;
    case IoClass::real_time:
      return 2;
  }
  return 1;
}

}  // namespace

std::string_view to_string(LeverKind kind) {
  switch (kind) {
    case LeverKind::nice:
      return "nice";
    case LeverKind::autogroup:
      return "autogroup";
    case LeverKind::cpu_weight:
      return "cpu_weight";
    case LeverKind::io_weight:
      return "io_weight";
    case LeverKind::performance_level:
      return "performance_level";
    case LeverKind::cu_mask:
      return "cu_mask";
    case LeverKind::queue_priority:
      return "queue_priority";
    case LeverKind::serial:
      return "serial";
    case LeverKind::queue_limit:
      return "queue_limit";
    case LeverKind::memory_limit:
      return "memory_limit";
    case LeverKind::scheduling:
      return "scheduling";
    case LeverKind::io_class:
      return "io_class";
    case LeverKind::slice_weight:
      return "slice_weight";
    case LeverKind::freezer:
      return "freezer";
    case LeverKind::timer_slack:
      return "timer_slack";
    case LeverKind::cpu_latency:
      return "cpu_latency";
    case LeverKind::energy_preference:
      return "energy_preference";
  }
  return "?";
}

bool is_for_dispatch(LeverKind kind) {
  return kind == LeverKind::cpu_latency || kind == LeverKind::timer_slack ||
         kind == LeverKind::energy_preference;
}

std::optional<LeverKind> parse_lever_kind(std::string_view text) {
  constexpr std::array kKinds{LeverKind::nice,
                              LeverKind::autogroup,
                              LeverKind::cpu_weight,
                              LeverKind::io_weight,
                              LeverKind::performance_level,
                              LeverKind::scheduling,
                              LeverKind::io_class,
                              LeverKind::timer_slack,
                              LeverKind::freezer,
                              LeverKind::energy_preference};
  for (const auto kind : kKinds)
    if (to_string(kind) == text) return kind;
  return std::nullopt;
}

std::string to_string(const LeverValue& value) {
  if (const auto* nice = std::get_if<Nice>(&value)) return to_string(*nice);
  if (const auto* weight = std::get_if<Weight>(&value))
    return weight->is_set() ? std::to_string(weight->effective()) : std::string(kUnset);
  if (const auto* policy = std::get_if<SchedulingPolicy>(&value))
    return std::string(to_string(*policy));
  if (const auto* io = std::get_if<IoPriority>(&value)) return to_string(*io);
  if (const auto* share = std::get_if<FrozenShare>(&value)) return to_string(*share);
  if (const auto* slack = std::get_if<TimerSlack>(&value)) return to_string(*slack);
  if (const auto* energy = std::get_if<EnergyPreference>(&value)) return energy->text();
  return std::string(to_string(std::get<PerformanceLevel>(value)));
}

std::optional<LeverValue> parse_lever_value(LeverKind kind, std::string_view text) {
  switch (kind) {
    case LeverKind::nice:
    case LeverKind::autogroup: {
      const auto nice = Nice::parse(text);
      return nice ? std::optional<LeverValue>(*nice) : std::nullopt;
    }
    case LeverKind::cpu_weight:
    case LeverKind::io_weight: {
      if (text == kUnset) return Weight();
      const auto number = parse_integer(text);
      const auto weight = number ? Weight::make(*number) : std::nullopt;
      return weight ? std::optional<LeverValue>(*weight) : std::nullopt;
    }
    case LeverKind::performance_level: {
      const auto level = parse_performance_level(text);
      return level ? std::optional<LeverValue>(*level) : std::nullopt;
    }
    case LeverKind::scheduling: {
      const auto policy = parse_scheduling_policy(text);
      return policy ? std::optional<LeverValue>(*policy) : std::nullopt;
    }
    case LeverKind::io_class: {
      const auto io = parse_io_priority(text);
      return io ? std::optional<LeverValue>(*io) : std::nullopt;
    }
    case LeverKind::freezer: {
      if (const auto share = FrozenShare::parse(text)) return LeverValue(*share);
      return std::nullopt;
    }
    case LeverKind::timer_slack: {
      if (const auto slack = TimerSlack::parse(text)) return LeverValue(*slack);
      return std::nullopt;
    }
    case LeverKind::energy_preference: {
      if (const auto energy = EnergyPreference::parse(text)) return LeverValue(*energy);
      return std::nullopt;
    }
    default:
      break;
  }
  return std::nullopt;
}

bool favours_more(const LeverValue& a, const LeverValue& b) {
  if (const auto *x = std::get_if<Nice>(&a), *y = std::get_if<Nice>(&b); x && y) return *x < *y;
  if (const auto *x = std::get_if<Weight>(&a), *y = std::get_if<Weight>(&b); x && y)
    return x->effective() > y->effective();
  if (const auto *x = std::get_if<PerformanceLevel>(&a), *y = std::get_if<PerformanceLevel>(&b);
      x && y)
    return clock_rank(*x) > clock_rank(*y);
  if (const auto *x = std::get_if<SchedulingPolicy>(&a), *y = std::get_if<SchedulingPolicy>(&b);
      x && y)
    return *x > *y;
  if (const auto *x = std::get_if<IoPriority>(&a), *y = std::get_if<IoPriority>(&b); x && y)
    return io_rank(*x) > io_rank(*y);
  // What is held is the rest of the system: the more it is held back, the better for the holder.
  if (const auto *x = std::get_if<FrozenShare>(&a), *y = std::get_if<FrozenShare>(&b); x && y)
    return *x > *y;
  if (const auto *x = std::get_if<EnergyPreference>(&a), *y = std::get_if<EnergyPreference>(&b);
      x && y)
    return x->saves_more_than(*y);
  if (const auto *x = std::get_if<TimerSlack>(&a), *y = std::get_if<TimerSlack>(&b); x && y)
    return *x < *y;
  return false;
}

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::pending:
      return "pending";
    case Outcome::applied:
      return "applied";
    case Outcome::gone:
      return "gone";
    case Outcome::denied:
      return "denied";
    case Outcome::unsupported:
      return "unsupported";
    case Outcome::contended:
      return "contended";
    case Outcome::failed:
      return "failed";
    case Outcome::dry_run:
      return "dry_run";
    case Outcome::standby:
      return "standby";
  }
  return "?";
}

Outcome outcome_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::gone:
    case ErrorCode::not_found:
      return Outcome::gone;
    case ErrorCode::denied:
      return Outcome::denied;
    case ErrorCode::unsupported:
      return Outcome::unsupported;
    case ErrorCode::contended:
      return Outcome::contended;
    default:
      return Outcome::failed;
  }
}

}  // namespace apusched::core
