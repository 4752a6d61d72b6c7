// SPDX-License-Identifier: MIT
#pragma once

#include <sdbus-c++/sdbus-c++.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/service.hpp"
#include "bus/marshal.hpp"
#include "dbus/gpu_adaptor.hpp"
#include "dbus/manager_adaptor.hpp"
#include "dbus/process_adaptor.hpp"

namespace apusched::bus {

/// What the objects ask of the server: authorisation and the commands that change something.
/// `sender` is the caller's unique bus name.
class Commands {
 public:
  using Reply = sdbus::Result<>;
  using PathReply = sdbus::Result<sdbus::ObjectPath>;
  virtual ~Commands() = default;
  virtual void register_pidfd(const std::string& sender, sdbus::UnixFd pidfd,
                              const std::string& profile, const Properties& options,
                              PathReply reply) = 0;
  virtual void register_pid(const std::string& sender, std::uint32_t pid,
                            const std::string& profile, const Properties& options,
                            PathReply reply) = 0;
  virtual void unregister(const std::string& sender, const std::string& path, Reply reply) = 0;
  virtual void refresh(const core::PciAddress& gpu, Reply reply) = 0;
};

class ManagerObject final : public sdbus::AdaptorInterfaces<org::apusched1::Manager_adaptor,
                                                            sdbus::ObjectManager_adaptor> {
 public:
  ManagerObject(sdbus::IConnection& connection, Commands& commands, const app::Service& service,
                std::string version, core::LaunchOptions launch);
  ~ManagerObject();
  void emit_changed(const std::vector<std::string>& properties);
  /// The registration has ended.
  void forget(core::RegistrationId id) { told_.erase(id); }

 private:
  void Register(sdbus::Result<sdbus::ObjectPath>&& result, sdbus::UnixFd pidfd, std::string profile,
                std::map<std::string, sdbus::Variant> options) override;
  void RegisterPid(sdbus::Result<sdbus::ObjectPath>&& result, uint32_t pid, std::string profile,
                   std::map<std::string, sdbus::Variant> options) override;
  void Unregister(sdbus::Result<>&& result, sdbus::ObjectPath process) override;
  std::map<sdbus::ObjectPath, std::map<std::string, sdbus::Variant>> ListProcesses() override;
  std::map<sdbus::ObjectPath, std::map<std::string, sdbus::Variant>> ListGpus() override;
  std::vector<std::map<std::string, sdbus::Variant>> Explain(const uint32_t& pid) override;
  std::vector<std::map<std::string, sdbus::Variant>> GetHistory(const uint32_t& count) override;
  std::map<std::string, std::string> GetLaunchEnvironment(const std::string& profile,
                                                          const bool& agent) override;
  std::tuple<bool, uint32_t, std::string> GetAdmission(const std::string& profile) override;
  std::string GetEffectiveConfig() override;
  std::string Version() override { return version_; }
  std::string State() override;
  std::vector<std::string> Degraded() override { return service_.degraded(); }
  bool DryRun() override { return service_.dry_run(); }
  uint32_t ProcessCount() override { return static_cast<std::uint32_t>(service_.ids().size()); }
  std::vector<std::string> Profiles() override;
  [[nodiscard]] std::string sender() const;

  /// What ListProcesses told last of a registration. To make a variant costs ten times what it
  /// costs to compare views, and most of them are the same each time.
  struct Told {
    app::ProcessView view;
    Properties properties;
  };
  [[nodiscard]] const Properties& told(core::RegistrationId id, app::ProcessView view);

  Commands& commands_;
  const app::Service& service_;
  std::string version_;
  core::LaunchOptions launch_;
  std::map<core::RegistrationId, Told> told_;
};

class ProcessObject final : public sdbus::AdaptorInterfaces<org::apusched1::Process_adaptor,
                                                            sdbus::ManagedObject_adaptor> {
 public:
  ProcessObject(sdbus::IConnection& connection, Commands& commands, const app::Service& service,
                core::RegistrationId id);
  ~ProcessObject();
  void emit_changed();

 private:
  void tell_latency(const app::ProcessView& now);
  void Release(sdbus::Result<>&& result) override;
  uint32_t Pid() override;
  uint64_t StartTime() override;
  std::string Executable() override;
  std::string Unit() override;
  uint32_t User() override;
  std::string Class() override;
  std::string Profile() override;
  std::string Source() override;
  std::map<std::string, sdbus::Struct<std::string, std::string, std::string, std::string>> Applied()
      override;
  uint32_t Threads() override;
  uint32_t Members() override;
  std::vector<std::string> Gpus() override;
  bool AgentAttached() override;
  std::map<std::string, sdbus::Variant> Agent() override;
  std::string ControlState() override;
  std::map<std::string, sdbus::Variant> Control() override;
  std::map<std::string, sdbus::Variant> GpuControl() override;
  /// Throws org.apusched1.Error.NotRegistered where the registration is gone.
  [[nodiscard]] app::ProcessView view() const;

  Commands& commands_;
  const app::Service& service_;
  core::RegistrationId id_;
  bool violated_ = false;  ///< the last that was told
};

class GpuObject final
    : public sdbus::AdaptorInterfaces<org::apusched1::Gpu_adaptor, sdbus::ManagedObject_adaptor> {
 public:
  /// `index` is the GPU's place in Service::gpus().
  GpuObject(sdbus::IConnection& connection, Commands& commands, const app::Service& service,
            std::size_t index, core::PciAddress address);
  ~GpuObject();
  void emit_changed();
  [[nodiscard]] const core::PciAddress& address() const { return address_; }

 private:
  void Refresh(sdbus::Result<>&& result) override;
  std::string PciAddress() override { return address_.text(); }
  std::string Name() override { return view().facts.name; }
  std::string Isa() override { return view().facts.isa; }
  uint32_t ComputeUnits() override { return view().facts.compute_units; }
  std::string PerformanceLevel() override { return view().level; }
  std::string PerformanceLevelOwner() override { return view().level_owner; }
  std::map<std::string, sdbus::Variant> Telemetry() override { return telemetry_of(view()); }
  uint32_t QueueCount() override { return view().queue_count; }
  uint32_t QueueLimit() override { return view().facts.queue_limit; }
  bool Oversubscribed() override { return oversubscribed(view()); }
  std::string Helper() override { return view().helper; }
  std::string ProbeMode() override { return view().probe_mode; }
  std::map<std::string,
           sdbus::Struct<uint64_t, uint64_t, uint32_t, uint64_t, uint64_t, uint64_t, uint64_t>>
  DispatchLatency() override {
    return latency_of(view());
  }
  [[nodiscard]] app::GpuView view() const { return service_.gpus().at(index_); }

  Commands& commands_;
  const app::Service& service_;
  std::size_t index_;
  core::PciAddress address_;
};

[[nodiscard]] std::string process_path(core::RegistrationId id);
[[nodiscard]] std::optional<core::RegistrationId> process_id(const std::string& path);
[[nodiscard]] std::string gpu_path(std::size_t index);

}  // namespace apusched::bus
