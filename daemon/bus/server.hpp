// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bus/callers.hpp"
#include "bus/objects.hpp"
#include "ports/event_loop.hpp"

namespace apusched::bus {

/// The daemon on the bus: exports the objects, authorises and carries out commands, announces
/// changes. Owner of the bus objects. Event-loop thread.
class Server final : public Commands, public app::Observer {
 public:
  /// All borrowed; must outlive the server.
  Server(sdbus::IConnection& connection, ports::EventLoop& loop, ports::ProcessSource& processes,
         app::Service& service, const std::string& version, core::LaunchOptions launch);
  ~Server() override;

  void register_pidfd(const std::string& sender, sdbus::UnixFd pidfd, const std::string& profile,
                      const Properties& options, PathReply reply) override;
  void register_pid(const std::string& sender, std::uint32_t pid, const std::string& profile,
                    const Properties& options, PathReply reply) override;
  void unregister(const std::string& sender, const std::string& path, Reply reply) override;
  void refresh(const core::PciAddress& gpu, Reply reply) override;

  void on_added(core::RegistrationId id) override;
  void on_removed(core::RegistrationId id) override;
  void on_changed(core::RegistrationId id) override;
  void on_gpu_changed(const core::PciAddress& gpu) override;
  void on_state_changed() override;

 private:
  using Opened = core::Result<std::unique_ptr<ports::ProcessHandle>>;
  /// Calls `allowed` with the caller where it may write, else answers AccessDenied.
  template <typename ReplyType, typename Allowed>
  void authorised(const std::string& sender, ReplyType reply, Allowed allowed);
  void add(const Caller& caller, Opened process, const std::string& profile,
           const Properties& options, const PathReply& reply);
  void announce_soon();
  void announce();

  sdbus::IConnection& connection_;
  ports::EventLoop& loop_;
  ports::ProcessSource& processes_;
  app::Service& service_;
  Callers callers_;
  std::optional<std::uint32_t> group_;
  std::unique_ptr<ManagerObject> manager_;
  std::map<core::RegistrationId, std::unique_ptr<ProcessObject>> process_objects_;
  std::vector<std::unique_ptr<GpuObject>> gpu_objects_;
  std::set<core::RegistrationId> changed_;
  std::set<core::PciAddress> changed_gpus_;
  bool state_changed_ = false;
  std::unique_ptr<ports::Subscription> announcement_;
};

}  // namespace apusched::bus
