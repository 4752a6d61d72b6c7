// SPDX-License-Identifier: MIT
#pragma once

/// Everything that differs between ROCr 5.2, 6 and 7 is here and nowhere else.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <cstdint>
#include <string>

#include "core/result.hpp"

namespace apusched::gpu_helper {

[[nodiscard]] inline std::string hsa_sentence(hsa_status_t status) {
  const char* text = nullptr;
  if (hsa_status_string(status, &text) == HSA_STATUS_SUCCESS && text != nullptr) return text;
  return "HSA status " + std::to_string(static_cast<unsigned>(status));
}

[[nodiscard]] inline tl::unexpected<core::Error> hsa_fail(const char* call, hsa_status_t status) {
  return core::fail(core::ErrorCode::failed, call, "HSA runtime", hsa_sentence(status));
}

/// AMD's attributes lie outside the range of the enumeration that the C interface takes. Its
/// parameter is an int on every ABI that ROCr has, which is what makes this well-behaved.
[[nodiscard]] inline hsa_status_t amd_agent_info(hsa_agent_t agent, unsigned attribute,
                                                 void* value) {
  return hsa_agent_get_info(agent, static_cast<hsa_agent_info_t>(attribute), value);
}

/// PCI domain of an agent. ROCr before 4.5 does not know the attribute: domain 0 then.
[[nodiscard]] inline std::uint32_t agent_domain(hsa_agent_t agent) {
  std::uint32_t domain = 0;
  const auto status = amd_agent_info(agent, HSA_AMD_AGENT_INFO_DOMAIN, &domain);
  return status == HSA_STATUS_SUCCESS ? domain : 0;
}

/// From ROCr 6.0 a hardware exception aborts the process unless a system event handler is
/// registered that returns success; 5.2 calls it for memory faults only. Either way the handler
/// only sets a flag: it runs on a thread of the runtime.
[[nodiscard]] inline hsa_status_t register_reset_handler(
    hsa_status_t (*handler)(const hsa_amd_event_t*, void*), void* data) {
  return hsa_amd_register_system_event_handler(handler, data);
}

}  // namespace apusched::gpu_helper
