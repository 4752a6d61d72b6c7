// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ctl/model.hpp"

/// Views to the JSON that apuschedctl(1) documents. Keys are only ever added while "schema" stays
/// the same; a value that is not known is null, never a number.
namespace apusched::ctl {

inline constexpr int kJsonSchema = 1;

[[nodiscard]] nlohmann::ordered_json json_of(const DaemonView& daemon);
[[nodiscard]] nlohmann::ordered_json json_of(const ProcessView& process);
[[nodiscard]] nlohmann::ordered_json json_of(const GpuView& gpu);
[[nodiscard]] nlohmann::ordered_json json_of(const StatusView& status);
[[nodiscard]] nlohmann::ordered_json json_list(const std::vector<ProcessView>& processes);
[[nodiscard]] nlohmann::ordered_json json_gpus(const std::vector<GpuView>& gpus);
[[nodiscard]] nlohmann::ordered_json json_probe(const std::vector<GpuView>& gpus);

[[nodiscard]] nlohmann::ordered_json json_explain(std::uint32_t pid,
                                                  const std::vector<ExplainLine>& lines);
[[nodiscard]] nlohmann::ordered_json json_history(const std::vector<HistoryLine>& lines);

/// Text of a document; bytes that are no UTF-8 are replaced. One line when `compact`.
[[nodiscard]] std::string to_text(const nlohmann::ordered_json& document, bool compact);

}  // namespace apusched::ctl
