// SPDX-License-Identifier: MIT
#include "bus/objects.hpp"

#include <utility>

#include "bus/errors.hpp"
#include "dbus/sdbus_version.hpp"
#include "settings/settings.hpp"

namespace apusched::bus {
namespace {

constexpr std::string_view kProcessPrefix = "/org/apusched1/process/";
constexpr std::string_view kGpuPrefix = "/org/apusched1/gpu/";

}  // namespace

std::string process_path(core::RegistrationId id) {
  return std::string(kProcessPrefix) + core::to_string(id);
}

std::optional<core::RegistrationId> process_id(const std::string& path) {
  if (!path.starts_with(kProcessPrefix)) return std::nullopt;
  return core::RegistrationId::parse(std::string_view(path).substr(kProcessPrefix.size()));
}

std::string gpu_path(std::size_t index) {
  return std::string(kGpuPrefix) + std::to_string(index);
}

ManagerObject::ManagerObject(sdbus::IConnection& connection, Commands& commands,
                             const app::Service& service, std::string version,
                             core::LaunchOptions launch)
    : AdaptorInterfaces(connection, sdbus::ObjectPath("/org/apusched1")),
      commands_(commands),
      service_(service),
      version_(std::move(version)),
      launch_(std::move(launch)) {
  registerAdaptor();
}

ManagerObject::~ManagerObject() {
  unregisterAdaptor();
}

std::string ManagerObject::sender() const {
  return sdbus_version::current_sender(getObject());
}

void ManagerObject::Register(sdbus::Result<sdbus::ObjectPath>&& result, sdbus::UnixFd pidfd,
                             std::string profile, std::map<std::string, sdbus::Variant> options) {
  commands_.register_pidfd(sender(), std::move(pidfd), profile, options, std::move(result));
}

void ManagerObject::RegisterPid(sdbus::Result<sdbus::ObjectPath>&& result, uint32_t pid,
                                std::string profile,
                                std::map<std::string, sdbus::Variant> options) {
  commands_.register_pid(sender(), pid, profile, options, std::move(result));
}

void ManagerObject::Unregister(sdbus::Result<>&& result, sdbus::ObjectPath process) {
  commands_.unregister(sender(), process, std::move(result));
}

std::map<sdbus::ObjectPath, std::map<std::string, sdbus::Variant>> ManagerObject::ListProcesses() {
  std::map<sdbus::ObjectPath, std::map<std::string, sdbus::Variant>> result;
  for (const auto id : service_.ids())
    if (auto view = service_.view(id)) result.emplace(process_path(id), told(id, std::move(*view)));
  return result;
}

const Properties& ManagerObject::told(core::RegistrationId id, app::ProcessView view) {
  const auto found = told_.find(id);
  if (found != told_.end() && found->second.view == view) return found->second.properties;
  auto properties = properties_of(view);
  return told_.insert_or_assign(id, Told{std::move(view), std::move(properties)})
      .first->second.properties;
}

std::map<sdbus::ObjectPath, std::map<std::string, sdbus::Variant>> ManagerObject::ListGpus() {
  std::map<sdbus::ObjectPath, std::map<std::string, sdbus::Variant>> result;
  std::size_t index = 0;
  for (const auto& view : service_.gpus()) result.emplace(gpu_path(index++), properties_of(view));
  return result;
}

std::vector<std::map<std::string, sdbus::Variant>> ManagerObject::Explain(const uint32_t& number) {
  const auto pid = core::Pid::make(number);
  if (!pid)
    throw invalid_argument("explain process " + std::to_string(number) +
                           ": a PID is between 1 and 2147483647");
  std::vector<Properties> lines;
  for (const auto& line : service_.explain(*pid))
    lines.push_back({{"what", sdbus::Variant(line.what)},
                     {"value", sdbus::Variant(line.value)},
                     {"why", sdbus::Variant(line.why)}});
  return lines;
}

std::vector<std::map<std::string, sdbus::Variant>> ManagerObject::GetHistory(
    const uint32_t& count) {
  std::vector<Properties> lines;
  const auto now = service_.now();
  for (const auto& line : service_.history(count))
    lines.push_back(history_line(line, std::chrono::duration<double>(now - line.at).count()));
  return lines;
}

std::map<std::string, std::string> ManagerObject::GetLaunchEnvironment(const std::string& profile,
                                                                       const bool& agent) {
  auto options = launch_;
  options.agent = agent;
  auto environment = service_.launch_environment(profile, options);
  if (!environment) throw to_dbus(environment.error());
  return std::move(*environment);
}

std::tuple<bool, uint32_t, std::string> ManagerObject::GetAdmission(const std::string& profile) {
  const auto admission = service_.admission(profile);
  if (!admission) throw to_dbus(admission.error());
  return {admission->admits, static_cast<std::uint32_t>(admission->wait.count()), admission->why};
}

std::string ManagerObject::GetEffectiveConfig() {
  return settings::to_yaml(service_.config());
}

std::string ManagerObject::State() {
  if (service_.ids().empty()) return "idle";
  return service_.degraded().empty() ? "active" : "degraded";
}

std::vector<std::string> ManagerObject::Profiles() {
  std::vector<std::string> names;
  for (const auto& [name, profile] : service_.config().profiles) names.push_back(name);
  return names;
}

void ManagerObject::emit_changed(const std::vector<std::string>& properties) {
  getObject().emitPropertiesChangedSignal(org::apusched1::Manager_adaptor::INTERFACE_NAME,
                                          sdbus_version::property_names(properties));
}

ProcessObject::ProcessObject(sdbus::IConnection& connection, Commands& commands,
                             const app::Service& service, core::RegistrationId id)
    : AdaptorInterfaces(connection, sdbus::ObjectPath(process_path(id))),
      commands_(commands),
      service_(service),
      id_(id) {
  registerAdaptor();
}

ProcessObject::~ProcessObject() {
  unregisterAdaptor();
}

void ProcessObject::Release(sdbus::Result<>&& result) {
  commands_.unregister(sdbus_version::current_sender(getObject()), process_path(id_),
                       std::move(result));
}

app::ProcessView ProcessObject::view() const {
  auto view = service_.view(id_);
  if (!view)
    throw to_dbus({core::ErrorCode::not_found, "look at", process_path(id_), "it was released"});
  return std::move(*view);
}

uint32_t ProcessObject::Pid() {
  return static_cast<std::uint32_t>(view().key.pid.value());
}
uint64_t ProcessObject::StartTime() {
  return view().key.start.ticks;
}
std::string ProcessObject::Executable() {
  return view().executable;
}
std::string ProcessObject::Unit() {
  return view().unit;
}
uint32_t ProcessObject::User() {
  return view().uid;
}
std::string ProcessObject::Class() {
  return std::string(core::to_string(view().work_class));
}
std::string ProcessObject::Profile() {
  return view().profile;
}
std::string ProcessObject::Source() {
  return view().source;
}
std::map<std::string, sdbus::Struct<std::string, std::string, std::string, std::string>>
ProcessObject::Applied() {
  return applied_of(view());
}
uint32_t ProcessObject::Threads() {
  return view().threads;
}
uint32_t ProcessObject::Members() {
  return view().members;
}
std::vector<std::string> ProcessObject::Gpus() {
  return view().gpus;
}
bool ProcessObject::AgentAttached() {
  return view().agent.has_value();
}
std::map<std::string, sdbus::Variant> ProcessObject::Agent() {
  return agent_of(view());
}

std::string ProcessObject::ControlState() {
  const auto now = view();
  return now.control ? now.control->state : std::string();
}
std::map<std::string, sdbus::Variant> ProcessObject::Control() {
  return control_of(view().control);
}
std::map<std::string, sdbus::Variant> ProcessObject::GpuControl() {
  return control_of(view().gpu_control);
}

void ProcessObject::tell_latency(const app::ProcessView& now) {
  bool known = false;
  bool met = true;
  for (const auto* control : {&now.control, &now.gpu_control}) {
    if (!*control) continue;
    const auto& state = (*control)->state;
    known = true;
    if ((state == "violating" || state == "saturated") && !std::exchange(violated_, true))
      emitLatencyViolated((*control)->why);
    // In between it is not known, and the last word stands.
    met = met && (state == "meeting" || state == "idle");
  }
  if (known && met && std::exchange(violated_, false)) emitLatencyRecovered();
}

void ProcessObject::emit_changed() {
  if (const auto now = service_.view(id_)) tell_latency(*now);
  getObject().emitPropertiesChangedSignal(
      org::apusched1::Process_adaptor::INTERFACE_NAME,
      sdbus_version::property_names({"Applied", "Unit", "Gpus", "AgentAttached", "ControlState"}));
}

GpuObject::GpuObject(sdbus::IConnection& connection, Commands& commands,
                     const app::Service& service, std::size_t index, core::PciAddress address)
    : AdaptorInterfaces(connection, sdbus::ObjectPath(gpu_path(index))),
      commands_(commands),
      service_(service),
      index_(index),
      address_(std::move(address)) {
  registerAdaptor();
}

GpuObject::~GpuObject() {
  unregisterAdaptor();
}

void GpuObject::Refresh(sdbus::Result<>&& result) {
  commands_.refresh(address_, std::move(result));
}

void GpuObject::emit_changed() {
  getObject().emitPropertiesChangedSignal(
      org::apusched1::Gpu_adaptor::INTERFACE_NAME,
      sdbus_version::property_names(
          {"PerformanceLevel", "PerformanceLevelOwner", "Helper", "ProbeMode"}));
}

}  // namespace apusched::bus
