// SPDX-License-Identifier: MIT
// The only file of the client that knows sdbus-c++.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <dbus/gpu_proxy.hpp>
#include <dbus/manager_proxy.hpp>
#include <system_error>
#include <utility>

#include "ctl/daemon_client.hpp"
#include "dbus/sdbus_version.hpp"

namespace apusched::ctl {
namespace {

constexpr const char* kService = "org.apusched1";
constexpr const char* kManagerPath = "/org/apusched1";
constexpr std::chrono::seconds kCallLimit{10};

using Properties = std::map<std::string, sdbus::Variant>;
using Objects = std::map<sdbus::ObjectPath, Properties>;
using LatencyStruct =
    sdbus::Struct<uint64_t, uint64_t, uint32_t, uint64_t, uint64_t, uint64_t, uint64_t>;
using LeverStruct = sdbus::Struct<std::string, std::string, std::string, std::string>;

template <typename Interface>
class Proxy final : public sdbus::ProxyInterfaces<Interface> {
 public:
  Proxy(sdbus::IConnection& connection, const std::string& path)
      : sdbus::ProxyInterfaces<Interface>(connection, sdbus_version::ServiceName(kService),
                                          sdbus::ObjectPath(path)) {
    this->registerProxy();
  }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;
  ~Proxy() { this->unregisterProxy(); }

  /// Every property of the interface in one call.
  [[nodiscard]] Properties properties() {
    Properties all;
    this->getProxy()
        .callMethod("GetAll")
        .onInterface("org.freedesktop.DBus.Properties")
        .withArguments(std::string(Interface::INTERFACE_NAME))
        .storeResultsTo(all);
    return all;
  }
};

/// A property of an older or newer daemon may be missing: then the view keeps its default.
template <typename T>
void take(const Properties& properties, const char* name, T& out) {
  const auto found = properties.find(name);
  if (found != properties.end()) out = found->second.get<T>();
}
template <typename T>
void take(const Properties& properties, const char* name, std::optional<T>& out) {
  const auto found = properties.find(name);
  if (found != properties.end()) out = found->second.get<T>();
}

DaemonView daemon_view(const Properties& properties) {
  DaemonView view;
  take(properties, "Version", view.version);
  take(properties, "State", view.state);
  take(properties, "Degraded", view.degraded);
  take(properties, "DryRun", view.dry_run);
  take(properties, "ProcessCount", view.process_count);
  take(properties, "Profiles", view.profiles);
  return view;
}

AgentView agent_view(const Properties& properties) {
  AgentView view;
  take(properties, "agents", view.agents);
  take(properties, "queues", view.queues);
  take(properties, "submitted", view.submitted);
  take(properties, "in_flight", view.in_flight);
  take(properties, "memory_bytes", view.memory_bytes);
  take(properties, "refused_queues", view.refused_queues);
  take(properties, "refused_allocations", view.refused_allocations);
  take(properties, "cu_masks", view.cu_masks);
  take(properties, "task_length_ns", view.task_length_ns);
  take(properties, "wait_count", view.wait_count);
  take(properties, "wait_p50_ns", view.wait_p50_ns);
  take(properties, "wait_p99_ns", view.wait_p99_ns);
  return view;
}

ControlView control_view(const Properties& properties) {
  ControlView view;
  take(properties, "state", view.state);
  take(properties, "why", view.why);
  take(properties, "target_us", view.target_us);
  take(properties, "wait_us", view.wait_us);
  take(properties, "engaged", view.engaged);
  return view;
}

ProcessView process_view(const std::string& path, const Properties& properties) {
  ProcessView view;
  view.object_path = path;
  take(properties, "Pid", view.pid);
  take(properties, "StartTime", view.start_time);
  take(properties, "Executable", view.executable);
  take(properties, "Unit", view.unit);
  take(properties, "User", view.user);
  take(properties, "Class", view.work_class);
  take(properties, "Profile", view.profile);
  take(properties, "Source", view.source);
  take(properties, "Threads", view.threads);
  take(properties, "Members", view.members);
  take(properties, "Gpus", view.gpus);
  std::map<std::string, LeverStruct> levers;
  take(properties, "Applied", levers);
  for (const auto& [name, lever] : levers)
    view.levers[name] = {std::get<0>(lever), std::get<1>(lever), std::get<2>(lever),
                         std::get<3>(lever)};
  Properties agent;
  take(properties, "Agent", agent);
  if (!agent.empty()) view.agent = agent_view(agent);
  Properties control;
  take(properties, "Control", control);
  if (!control.empty()) view.control = control_view(control);
  Properties gpu_control;
  take(properties, "GpuControl", gpu_control);
  if (!gpu_control.empty()) view.gpu_control = control_view(gpu_control);
  return view;
}

TelemetryView telemetry_view(const Properties& readings) {
  TelemetryView view;
  take(readings, "busy_percent", view.busy_percent);
  take(readings, "temperature_celsius", view.temperature_celsius);
  take(readings, "power_watts", view.power_watts);
  take(readings, "shader_clock_mhz", view.shader_clock_mhz);
  take(readings, "vram_used_bytes", view.vram_used_bytes);
  take(readings, "gtt_used_bytes", view.gtt_used_bytes);
  take(readings, "level", view.level);
  take(readings, "level_rocm_smi", view.level_rocm_smi);
  take(readings, "age_seconds", view.age_seconds);
  return view;
}

LatencyView latency_view(const LatencyStruct& latency) {
  using std::chrono::nanoseconds;
  return {std::get<0>(latency),
          std::get<1>(latency),
          std::get<2>(latency),
          nanoseconds{std::get<3>(latency)},
          nanoseconds{std::get<4>(latency)},
          nanoseconds{std::get<5>(latency)},
          nanoseconds{std::get<6>(latency)}};
}

GpuView gpu_view(const std::string& path, const Properties& properties) {
  GpuView view;
  view.object_path = path;
  take(properties, "PciAddress", view.pci_address);
  take(properties, "Name", view.name);
  take(properties, "Isa", view.isa);
  take(properties, "ComputeUnits", view.compute_units);
  take(properties, "PerformanceLevel", view.performance_level);
  take(properties, "PerformanceLevelOwner", view.performance_level_owner);
  take(properties, "QueueCount", view.queue_count);
  take(properties, "QueueLimit", view.queue_limit);
  take(properties, "Oversubscribed", view.oversubscribed);
  take(properties, "Helper", view.helper);
  take(properties, "ProbeMode", view.probe_mode);
  Properties readings;
  take(properties, "Telemetry", readings);
  view.telemetry = telemetry_view(readings);
  std::map<std::string, LatencyStruct> latencies;
  take(properties, "DispatchLatency", latencies);
  for (const auto& [source, latency] : latencies)
    view.dispatch_latency[source] = latency_view(latency);
  return view;
}

tl::unexpected<Failure> failed(const sdbus::Error& error) {
  return tl::unexpected(failure_of(error.getName(), error.getMessage()));
}

class PidFd {
 public:
  explicit PidFd(std::uint32_t pid)
      : fd_(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0U))) {}
  PidFd(const PidFd&) = delete;
  PidFd& operator=(const PidFd&) = delete;
  ~PidFd() {
    if (fd_ >= 0) close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

class BusClient final : public DaemonClient {
 public:
  explicit BusClient(std::unique_ptr<sdbus::IConnection> connection)
      : connection_(std::move(connection)), manager_(*connection_, kManagerPath) {}

  Outcome<DaemonView> daemon() override try {
    return daemon_view(manager_.properties());
  } catch (const sdbus::Error& error) {
    return failed(error);
  }

  Outcome<std::vector<ProcessView>> processes() override try {
    std::vector<ProcessView> views;
    for (const auto& [path, properties] : manager_.ListProcesses())
      views.push_back(process_view(path, properties));
    std::ranges::sort(views, {}, &ProcessView::pid);
    return views;
  } catch (const sdbus::Error& error) {
    return failed(error);
  }

  Outcome<std::vector<GpuView>> gpus(bool fresh) override try {
    Objects objects = manager_.ListGpus();
    if (fresh && !objects.empty()) {
      for (const auto& [path, properties] : objects) refresh(path);
      objects = manager_.ListGpus();
    }
    std::vector<GpuView> views;
    for (const auto& [path, properties] : objects) views.push_back(gpu_view(path, properties));
    std::ranges::sort(views, {}, &GpuView::pci_address);
    return views;
  } catch (const sdbus::Error& error) {
    return failed(error);
  }

  Outcome<std::string> register_process(std::uint32_t pid, const std::string& profile,
                                        const RegisterOptions& chosen) override try {
    const PidFd process(pid);
    if (process.get() < 0) {
      const bool gone = errno == ESRCH || errno == EINVAL;
      return tl::unexpected(Failure{gone ? ExitCode::not_found : ExitCode::refused,
                                    gone ? "there is no process " + std::to_string(pid)
                                         : "cannot open process " + std::to_string(pid) + ": " +
                                               std::generic_category().message(errno)});
    }
    Properties options;
    if (chosen.include_children) options["include-children"] = sdbus::Variant(true);
    if (chosen.expect_agent) options["expect-agent"] = sdbus::Variant(true);
    return std::string(manager_.Register(sdbus::UnixFd(process.get()), profile, options));
  } catch (const sdbus::Error& error) {
    return failed(error);
  }

  Outcome<std::vector<ExplainLine>> explain(std::uint32_t pid) override try {
    std::vector<ExplainLine> lines;
    for (const auto& properties : manager_.Explain(pid)) {
      auto& line = lines.emplace_back();
      take(properties, "what", line.what);
      take(properties, "value", line.value);
      take(properties, "why", line.why);
    }
    return lines;
  } catch (const sdbus::Error& error) {
    return failed(error);
  }

  Outcome<std::vector<HistoryLine>> history(std::uint32_t count) override try {
    std::vector<HistoryLine> lines;
    for (const auto& properties : manager_.GetHistory(count)) {
      auto& line = lines.emplace_back();
      take(properties, "seconds_ago", line.seconds_ago);
      take(properties, "pid", line.pid);
      take(properties, "of", line.of);
      take(properties, "what", line.what);
      take(properties, "lever", line.lever);
      take(properties, "text", line.text);
      take(properties, "before_us", line.before_us);
      take(properties, "after_us", line.after_us);
    }
    return lines;
  } catch (const sdbus::Error& error) {
    return failed(error);
  }

  Outcome<std::map<std::string, std::string>> launch_environment(const std::string& profile,
                                                                 bool agent) override try {
    return manager_.GetLaunchEnvironment(profile, agent);
  } catch (const sdbus::Error& error) {
    return failed(error);
  }

  Outcome<AdmissionView> admission(const std::string& profile) override try {
    auto [admits, wait_ms, why] = manager_.GetAdmission(profile);
    return AdmissionView{admits, std::chrono::milliseconds(wait_ms), std::move(why)};
  } catch (const sdbus::Error& error) {
    return failed(error);
  }

  Outcome<void> unregister(const std::string& object_path) override try {
    manager_.Unregister(sdbus::ObjectPath(object_path));
    return {};
  } catch (const sdbus::Error& error) {
    return failed(error);
  }

 private:
  /// A GPU that cannot be read now still has its last readings, with their age.
  void refresh(const std::string& path) {
    try {
      Proxy<org::apusched1::Gpu_proxy>(*connection_, path).Refresh();
    } catch (const sdbus::Error& error) {
      if (failure_of(error.getName(), error.getMessage()).code == ExitCode::unreachable) throw;
    }
  }

  std::unique_ptr<sdbus::IConnection> connection_;
  Proxy<org::apusched1::Manager_proxy> manager_;
};

bool is_running(sdbus::IConnection& connection) {
  bool owned = false;
  auto bus = sdbus::createProxy(connection, sdbus_version::ServiceName("org.freedesktop.DBus"),
                                sdbus::ObjectPath("/org/freedesktop/DBus"));
  bus->callMethod("NameHasOwner")
      .onInterface("org.freedesktop.DBus")
      .withArguments(std::string(kService))
      .storeResultsTo(owned);
  return owned;
}

}  // namespace

Outcome<std::unique_ptr<DaemonClient>> connect(const std::string& bus) {
  try {
    auto connection = bus == "system"    ? sdbus::createSystemBusConnection()
                      : bus == "session" ? sdbus::createSessionBusConnection()
                                         : sdbus::createSessionBusConnectionWithAddress(bus);
    connection->setMethodCallTimeout(kCallLimit);
    // asked first, because a call would let the bus start the daemon
    if (!is_running(*connection))
      return tl::unexpected(failure_of("org.freedesktop.DBus.Error.ServiceUnknown", ""));
    return std::make_unique<BusClient>(std::move(connection));
  } catch (const sdbus::Error& error) {
    return tl::unexpected(
        Failure{ExitCode::unreachable, "cannot reach the " + bus + " bus: " + error.getMessage()});
  }
}

}  // namespace apusched::ctl
