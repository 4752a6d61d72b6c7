// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "platform/agent_page.hpp"
#include "platform/shared_page.hpp"
#include "platform/unique_fd.hpp"
#include "ports/agents.hpp"
#include "ports/event_loop.hpp"
#include "ports/processes.hpp"
#include "ports/report.hpp"

namespace apusched::platform {

struct AgentSocketOptions {
  std::string path;  ///< at most 107 bytes
  std::uint32_t max_agents = 256;
  std::chrono::milliseconds greeting_deadline{2000};  ///< for an agent's Hello
  /// Connections taken in one second; more wait in the kernel's queue, at no cost to us.
  std::uint32_t max_connections_per_second = 200;
};

/// The socket at which agents greet. Anybody may connect; what a process can do by that is to have
/// its own queues managed. Owner of the connections and their pages. Event-loop thread.
class AgentSocket final : public ports::AgentHub {
 public:
  /// Borrows all; they must outlive it. A socket left by an earlier run is replaced.
  [[nodiscard]] static core::Result<std::unique_ptr<AgentSocket>> open(
      ports::EventLoop& loop, ports::ProcessSource& processes, ports::Report& report,
      AgentSocketOptions options);
  ~AgentSocket() override;

  void set_events(Events* events) override { events_ = events; }
  [[nodiscard]] core::Result<std::uint32_t> set(core::AgentId id,
                                                const core::AgentSettings& settings) override;
  [[nodiscard]] std::optional<core::AgentReport> read(core::AgentId id) override;
  [[nodiscard]] std::uint64_t rejected() const override { return rejected_; }

 private:
  /// Connected, not yet greeted.
  struct Guest {
    UniqueFd socket;
    std::unique_ptr<ports::Subscription> readable;
    std::unique_ptr<ports::Subscription> deadline;
  };
  struct Agent {
    UniqueFd socket;
    core::AgentFacts facts;
    SharedPage control;
    SharedPage telemetry;
    ReportChecker checker;
    std::unique_ptr<ports::ProcessHandle> process;
    std::unique_ptr<ports::Subscription> readable;
    std::unique_ptr<ports::Subscription> exit_watch;
    std::uint32_t sequence = 0;  ///< of the control page
    bool senseless = false;      ///< told once
  };

  AgentSocket(ports::EventLoop& loop, ports::ProcessSource& processes, ports::Report& report,
              AgentSocketOptions options, UniqueFd listener);
  void listen();
  void accept_one();
  void greeted(core::AgentId id);
  [[nodiscard]] core::Result<core::AgentFacts> admit(core::Pid pid,
                                                     std::span<const std::byte> hello);
  [[nodiscard]] core::Result<void> welcome(core::AgentId id, UniqueFd& socket,
                                           std::span<const std::byte> hello);
  [[nodiscard]] bool knows(const core::ProcessKey& process) const;
  void drop(core::AgentId id, std::string_view why);
  void tell(const core::Error& error);

  ports::EventLoop& loop_;
  ports::ProcessSource& processes_;
  ports::Report& report_;
  AgentSocketOptions options_;
  UniqueFd listener_;
  Events* events_ = nullptr;
  std::unique_ptr<ports::Subscription> connects_;
  std::unique_ptr<ports::Subscription> pause_;
  std::map<core::AgentId, Guest> guests_;
  std::map<core::AgentId, std::unique_ptr<Agent>> agents_;
  std::uint32_t next_id_ = 1;
  std::uint32_t in_this_second_ = 0;
  std::chrono::steady_clock::time_point second_{};
  std::chrono::steady_clock::time_point told_{};
  std::uint64_t rejected_ = 0;
};

}  // namespace apusched::platform
