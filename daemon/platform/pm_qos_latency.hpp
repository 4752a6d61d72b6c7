// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>

#include "platform/unique_fd.hpp"
#include "ports/idle_latency.hpp"

namespace apusched::platform {

/// ports::IdleLatency over the kernel's CPU latency QoS, and cpuidle in sysfs. Owner of the open
/// device, which is the request: the kernel takes it back when the descriptor goes, however this
/// process ends (linux Documentation/power/pm_qos_interface.rst).
class PmQosLatency final : public ports::IdleLatency {
 public:
  PmQosLatency(std::string device, std::string sysfs_root)
      : device_(std::move(device)), root_(std::move(sysfs_root)) {}
  [[nodiscard]] core::Result<void> limit(core::IdleLimit limit) override;
  void release() override { request_.reset(); }
  /// Of the first CPU: those of an APU all have the same.
  [[nodiscard]] core::Result<ports::IdleState> deepest() override;

 private:
  [[nodiscard]] core::Result<void> write(core::IdleLimit limit);

  std::string device_;
  std::string root_;
  UniqueFd request_;
};

}  // namespace apusched::platform
