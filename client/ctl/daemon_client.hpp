// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ctl/exit_code.hpp"
#include "ctl/model.hpp"

namespace apusched::ctl {

struct RegisterOptions {
  bool include_children = false;
  bool expect_agent = false;
};

/// The daemon as the commands see it. Calls block until the daemon answers or a time limit of
/// ten seconds passes.
class DaemonClient {
 public:
  virtual ~DaemonClient() = default;
  [[nodiscard]] virtual Outcome<DaemonView> daemon() = 0;
  /// By PID.
  [[nodiscard]] virtual Outcome<std::vector<ProcessView>> processes() = 0;
  /// By PCI address. `fresh`: waits for new readings (the daemon limits how often).
  [[nodiscard]] virtual Outcome<std::vector<GpuView>> gpus(bool fresh) = 0;
  /// Opens a pidfd for `pid` itself, so that the daemon cannot take a later process for it.
  /// Answers the new registration's object path.
  [[nodiscard]] virtual Outcome<std::string> register_process(std::uint32_t pid,
                                                              const std::string& profile,
                                                              const RegisterOptions& options) = 0;
  [[nodiscard]] virtual Outcome<std::vector<ExplainLine>> explain(std::uint32_t pid) = 0;
  [[nodiscard]] virtual Outcome<std::vector<HistoryLine>> history(std::uint32_t count) = 0;
  [[nodiscard]] virtual Outcome<std::map<std::string, std::string>> launch_environment(
      const std::string& profile, bool agent) = 0;
  /// Whether a program with this profile may be started now.
  [[nodiscard]] virtual Outcome<AdmissionView> admission(const std::string& profile) = 0;
  [[nodiscard]] virtual Outcome<void> unregister(const std::string& object_path) = 0;
};

/// `bus` is "system", "session" or a D-Bus address. Never starts the daemon.
[[nodiscard]] Outcome<std::unique_ptr<DaemonClient>> connect(const std::string& bus);

/// Stands in for a daemon that could not be connected to: answers every call with `why`.
[[nodiscard]] std::unique_ptr<DaemonClient> unreachable(Failure why);

/// Turns a D-Bus error into an exit code and a sentence (pure; for tests).
[[nodiscard]] Failure failure_of(const std::string& error_name, const std::string& message);

}  // namespace apusched::ctl
