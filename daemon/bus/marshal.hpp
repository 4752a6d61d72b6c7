// SPDX-License-Identifier: MIT
#pragma once

#include <sdbus-c++/Types.h>

#include <map>
#include <string>
#include <vector>

#include "app/views.hpp"

namespace apusched::bus {

/// (outcome, target, value, detail) by lever name.
using AppliedMap =
    std::map<std::string, sdbus::Struct<std::string, std::string, std::string, std::string>>;
/// (count, lost, in_window, p50, p95, p99, max), times in nanoseconds, by source.
using LatencyMap =
    std::map<std::string, sdbus::Struct<std::uint64_t, std::uint64_t, std::uint32_t, std::uint64_t,
                                        std::uint64_t, std::uint64_t, std::uint64_t>>;
using Properties = std::map<std::string, sdbus::Variant>;

[[nodiscard]] AppliedMap applied_of(const app::ProcessView& view);
[[nodiscard]] LatencyMap latency_of(const app::GpuView& view);
/// Readings the hardware does not give are left out.
[[nodiscard]] Properties telemetry_of(const app::GpuView& view);
/// Empty without an agent.
[[nodiscard]] Properties agent_of(const app::ProcessView& view);
[[nodiscard]] Properties control_of(const std::optional<app::ControlView>& control);
[[nodiscard]] Properties history_line(const app::HistoryLine& line, double seconds_ago);
[[nodiscard]] bool oversubscribed(const app::GpuView& view);
[[nodiscard]] Properties properties_of(const app::ProcessView& view);
[[nodiscard]] Properties properties_of(const app::GpuView& view);

}  // namespace apusched::bus
