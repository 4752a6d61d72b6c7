// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "ctl/model.hpp"
#include "ctl/text.hpp"

/// Views to text for people. Pure: no clock, no terminal, no bus.
namespace apusched::ctl {

[[nodiscard]] std::string render_status(const StatusView& status, const Style& style);
[[nodiscard]] std::string render_daemon(const DaemonView& daemon, const Style& style);
[[nodiscard]] std::string render_explain(std::uint32_t pid, const std::vector<ExplainLine>& lines,
                                         const Style& style);
[[nodiscard]] std::string render_history(const std::vector<HistoryLine>& lines, const Style& style);
/// One line per process.
[[nodiscard]] std::string render_list(const std::vector<ProcessView>& processes,
                                      const Style& style);
/// One process with its levers: what was asked for, what came of it, and why.
[[nodiscard]] std::string render_process(const ProcessView& process, const Style& style);
[[nodiscard]] std::string render_gpus(const std::vector<GpuView>& gpus, const Style& style);
/// Only the dispatch latencies.
[[nodiscard]] std::string render_probe(const std::vector<GpuView>& gpus, const Style& style);

}  // namespace apusched::ctl
