// SPDX-License-Identifier: MIT
#include "gpu_helper/telemetry.hpp"

#ifdef APUSCHED_HAVE_ROCM_SMI
#include <rocm_smi/rocm_smi.h>

#include <array>
#include <cstdio>
#endif

namespace apusched::gpu_helper {

RsmiLevel::RsmiLevel(core::PciAddress gpu) : gpu_(std::move(gpu)) {}

#ifdef APUSCHED_HAVE_ROCM_SMI

namespace {

/// rsmi_dev_pci_id_get: domain in the upper half, then bus, device and function.
std::string pci_text(std::uint64_t id) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x",
                static_cast<unsigned>((id >> 32U) & 0xffffU),
                static_cast<unsigned>((id >> 8U) & 0xffU),
                static_cast<unsigned>((id >> 3U) & 0x1fU), static_cast<unsigned>(id & 7U));
  return text.data();
}

std::optional<core::PerformanceLevel> from_rsmi(rsmi_dev_perf_level_t level) {
  using core::PerformanceLevel;
  switch (level) {
    case RSMI_DEV_PERF_LEVEL_AUTO:
      return PerformanceLevel::automatic;
    case RSMI_DEV_PERF_LEVEL_LOW:
      return PerformanceLevel::low;
    case RSMI_DEV_PERF_LEVEL_HIGH:
      return PerformanceLevel::high;
    case RSMI_DEV_PERF_LEVEL_MANUAL:
      return PerformanceLevel::manual;
    case RSMI_DEV_PERF_LEVEL_STABLE_STD:
      return PerformanceLevel::profile_standard;
    case RSMI_DEV_PERF_LEVEL_STABLE_PEAK:
      return PerformanceLevel::profile_peak;
    case RSMI_DEV_PERF_LEVEL_STABLE_MIN_MCLK:
      return PerformanceLevel::profile_min_mclk;
    case RSMI_DEV_PERF_LEVEL_STABLE_MIN_SCLK:
      return PerformanceLevel::profile_min_sclk;
    case RSMI_DEV_PERF_LEVEL_DETERMINISM:
      return PerformanceLevel::perf_determinism;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool RsmiLevel::built_in() {
  return true;
}

RsmiLevel::~RsmiLevel() {
  if (initialised_) rsmi_shut_down();
}

void RsmiLevel::start() {
  started_ = true;
  initialised_ = rsmi_init(0) == RSMI_STATUS_SUCCESS;
  std::uint32_t count = 0;
  if (!initialised_ || rsmi_num_monitor_devices(&count) != RSMI_STATUS_SUCCESS) return;
  for (std::uint32_t index = 0; index < count; ++index) {
    std::uint64_t id = 0;
    if (rsmi_dev_pci_id_get(index, &id) == RSMI_STATUS_SUCCESS && pci_text(id) == gpu_.text())
      index_ = index;
  }
}

std::optional<core::PerformanceLevel> RsmiLevel::read() {
  if (!started_) start();
  rsmi_dev_perf_level_t level = RSMI_DEV_PERF_LEVEL_UNKNOWN;
  if (!index_ || rsmi_dev_perf_level_get(*index_, &level) != RSMI_STATUS_SUCCESS)
    return std::nullopt;
  return from_rsmi(level);
}

#else

bool RsmiLevel::built_in() {
  return false;
}
RsmiLevel::~RsmiLevel() = default;
void RsmiLevel::start() {
  started_ = true;
}
std::optional<core::PerformanceLevel> RsmiLevel::read() {
  return std::nullopt;
}

#endif

}  // namespace apusched::gpu_helper
