// SPDX-License-Identifier: MIT
#include "core/launch_environment.hpp"

#include <algorithm>

namespace apusched::core {
namespace {

/// Low bits in a row are balanced over the engines; empty where there is nothing to take away.
std::string cu_mask_of(const Percent& limit, const std::vector<CuGeometry>& gpus) {
  constexpr std::uint32_t kWhole = 100;
  std::string text;
  for (std::size_t index = 0; index < gpus.size(); ++index) {
    const auto units = unit_count(gpus[index]);
    const auto allowed = std::max(1U, units * limit.value() / kWhole);
    if (allowed >= units) continue;
    text += (text.empty() ? "" : ";") + std::to_string(index) + ":0-" +
            std::to_string(allowed * cus_per_unit(gpus[index]) - 1);
  }
  return text;
}

/// HSA_TOOLS_LIB is a list separated by blanks; quotes keep a path with a blank together.
std::string as_list_entry(const std::string& path) {
  return path.find(' ') == std::string::npos ? path : "\"" + path + "\"";
}

}  // namespace

std::map<std::string, std::string> launch_environment(const Profile& profile,
                                                      const LaunchOptions& options) {
  std::map<std::string, std::string> result;
  if (profile.queue_limit) result["GPU_MAX_HW_QUEUES"] = to_string(*profile.queue_limit);
  if (!options.agent) {
    if (profile.serial) result["AMD_SERIALIZE_KERNEL"] = "3";
    if (profile.cu_limit_percent)
      if (auto mask = cu_mask_of(*profile.cu_limit_percent, options.gpus); !mask.empty())
        result["HSA_CU_MASK"] = std::move(mask);
    return result;
  }
  result["HSA_TOOLS_LIB"] = as_list_entry(options.agent_library);
  if (!options.agent_socket.empty()) result["APUSCHED_AGENT_SOCKET"] = options.agent_socket;
  if (profile.serial) result["APUSCHED_SERIAL"] = "1";
  if (profile.queue_limit) result["APUSCHED_QUEUE_LIMIT"] = to_string(*profile.queue_limit);
  if (profile.memory_limit) result["APUSCHED_MEMORY_LIMIT_MIB"] = to_string(*profile.memory_limit);
  return result;
}

}  // namespace apusched::core
