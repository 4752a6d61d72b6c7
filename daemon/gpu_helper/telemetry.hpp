// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/types.hpp"
#include "ports/gpu.hpp"

namespace apusched::gpu_helper {

/// Everything that sysfs tells about one GPU now; each file that cannot be read is no value.
[[nodiscard]] ports::GpuTelemetry read_telemetry(const std::string& sysfs_root,
                                                 const core::PciAddress& gpu);

/// rocm-smi-lib, used for one thing only: a second opinion on the performance level. Its device
/// mutex in /dev/shm has no time limit, which is why it lives in this process. Initialised at the
/// first question; any failure means no value, for good.
class RsmiLevel {
 public:
  explicit RsmiLevel(core::PciAddress gpu);
  ~RsmiLevel();
  RsmiLevel(const RsmiLevel&) = delete;
  RsmiLevel& operator=(const RsmiLevel&) = delete;

  /// False where the build found no rocm-smi-lib.
  [[nodiscard]] static bool built_in();
  [[nodiscard]] std::optional<core::PerformanceLevel> read();

 private:
  void start();

  core::PciAddress gpu_;
  bool started_ = false;
  bool initialised_ = false;
  std::optional<std::uint32_t> index_;
};

}  // namespace apusched::gpu_helper
