// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "core/hold_back.hpp"
#include "ports/processes.hpp"

namespace apusched::platform {

/// ProcessSource over /proc, pidfds and the cgroup file system. Event-loop thread only.
class ProcfsProcesses final : public ports::ProcessSource {
 public:
  /// `cgroup_root` is where cgroup file systems are mounted, "/sys/fs/cgroup" but for tests.
  explicit ProcfsProcesses(std::string cgroup_root = "/sys/fs/cgroup");

  core::Result<std::unique_ptr<ports::ProcessHandle>> open(core::Pid pid) override;
  core::Result<std::unique_ptr<ports::ProcessHandle>> adopt(int pidfd) override;
  core::Result<ports::ProcessFacts> facts(core::Pid pid) override;
  core::Result<ports::ProcessIdentity> identity(core::Pid pid) override;
  core::Result<std::vector<ports::ThreadFacts>> threads(core::Pid pid,
                                                        std::uint32_t limit) override;
  core::Result<std::vector<ports::ThreadFacts>> threads_besides(core::Pid pid,
                                                                const std::set<core::Tid>& known,
                                                                std::uint32_t limit) override;
  core::Result<std::vector<core::Pid>> children(core::Pid pid) override;
  core::StartTime now() override;
  core::Result<core::Placement> placement(core::Pid pid) override;
  core::Result<core::Pid> member_of_autogroup(const std::string& group) override;
  core::Result<std::vector<core::Pid>> sharing_group(core::Pid pid) override;
  core::Result<std::string> occupied_beside(const std::string& group,
                                            const std::string& child) override;
  core::Result<std::uint64_t> activity(core::Pid pid) override;
  core::Result<ports::Affinity> affinity(core::Pid pid, std::uint32_t limit) override;

 private:
  [[nodiscard]] std::string cpu_group_of(core::Pid pid) const;
  std::string cgroup_root_;
};

/// In a cgroup v2 directory and those below it, at most 256.
[[nodiscard]] core::Result<std::vector<core::UnitProcess>> processes_in_group(
    const std::string& directory);

}  // namespace apusched::platform
