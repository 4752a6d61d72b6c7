// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <tl/expected.hpp>

namespace apusched {

/// Exit codes of apuschedd, documented in apuschedd(8).
enum ExitCode : int {
  kOk = 0,
  kUnexpected = 1,
  kUsage = 2,
  kBadConfiguration = 3,
  kNotRoot = 4,
  kNoBus = 5,
  kNameTaken = 6,
  kRuntimeDir = 7,
};

struct Options {
  std::string config_file = "/etc/apusched/apuschedd.yaml";
  bool config_given = false;
  bool check_config = false;
  bool dry_run = false;
  bool restore = false;
  std::string bus = "system";
  std::string sysfs_root = "/sys";
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string cpu_latency_device = "/dev/cpu_dma_latency";
  std::string runtime_dir = "/run/apusched";
  std::string gpu_helper;
  std::string gpu_write;
  std::string freezer;
  std::string agent_library;
  std::string record;
  std::string replay;
  std::string systemd_control_dir = "/run/systemd/system.control";
  std::string log_level = "info";
};

/// The options, or the exit code with which to end (help and version: 0), after printing.
[[nodiscard]] tl::expected<Options, int> parse_options(int argc, char** argv);

}  // namespace apusched
