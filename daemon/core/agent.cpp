// SPDX-License-Identifier: MIT
#include "core/agent.hpp"

namespace apusched::core {

std::optional<std::chrono::nanoseconds> mean_task_length(const AgentReport& before,
                                                         const AgentReport& after,
                                                         std::chrono::nanoseconds between) {
  constexpr std::uint64_t kEnough = 10;
  if (after.samples < before.samples + kEnough || after.taken <= before.taken ||
      after.busy_samples < before.busy_samples || between.count() <= 0)
    return std::nullopt;
  const auto busy = static_cast<double>(after.busy_samples - before.busy_samples) /
                    static_cast<double>(after.samples - before.samples);
  const auto packets = static_cast<double>(after.taken - before.taken);
  return std::chrono::nanoseconds(
      static_cast<std::int64_t>(busy * static_cast<double>(between.count()) / packets));
}

}  // namespace apusched::core
