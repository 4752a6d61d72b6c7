// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "core/types.hpp"
#include "ports/gpu.hpp"

namespace apusched::gpu_helper {

/// Everything that sysfs tells about one GPU now; each file that cannot be read is no value.
[[nodiscard]] ports::GpuTelemetry read_telemetry(const std::string& sysfs_root,
                                                 const core::PciAddress& gpu);

/// The same within a time: a file may take a second while the firmware is busy, and meanwhile the
/// helper does nothing else. What there is no time for is no value now, and comes first next time.
class TelemetryReader {
 public:
  TelemetryReader(std::string sysfs_root, core::PciAddress gpu);
  /// Ends after the first reading that is past `budget`.
  [[nodiscard]] ports::GpuTelemetry read(std::chrono::nanoseconds budget);
  /// Of the last read().
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  std::string sysfs_root_;
  core::PciAddress gpu_;
  std::size_t next_ = 0;
  bool complete_ = true;
};

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
