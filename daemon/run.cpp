// SPDX-License-Identifier: MIT
#include "run.hpp"

#include <sdbus-c++/sdbus-c++.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>

#include "app/service.hpp"
#include "bus/connection.hpp"
#include "bus/server.hpp"
#include "platform/agent_socket.hpp"
#include "platform/cpufreq_energy.hpp"
#include "platform/file_ledger_store.hpp"
#include "platform/freezer_process.hpp"
#include "platform/gpu_helper_process.hpp"
#include "platform/gpu_level_writer.hpp"
#include "platform/gpu_topology.hpp"
#include "platform/linux_scheduler.hpp"
#include "platform/no_units.hpp"
#include "platform/pm_qos_latency.hpp"
#include "platform/procfs_meters.hpp"
#include "platform/procfs_processes.hpp"
#include "platform/sd_event_loop.hpp"
#include "platform/sysfs_power.hpp"
#include "platform/systemd_units.hpp"
#include "report/log_report.hpp"
#include "report/record.hpp"
#include "settings/settings.hpp"

namespace apusched {
namespace {

constexpr const char* kBusName = "org.apusched1";

std::optional<core::Config> read_config(const Options& options) {
  // The built-in configuration is complete: only a file that was asked for has to be there.
  if (!options.config_given && ::access(options.config_file.c_str(), F_OK) != 0)
    return core::default_config();
  auto parsed = settings::load(options.config_file);
  if (parsed) return std::move(*parsed);
  for (const auto& error : parsed.error())
    std::fprintf(stderr, "%s\n", settings::to_string(error).c_str());
  return std::nullopt;
}

/// The wiring. Members are destroyed in reverse order: who borrows goes before what it borrowed.
class Daemon {
 public:
  Daemon(const Options& options, core::Config config)
      : options_(options), config_(std::move(config)), report_(options.log_level) {}

  int run() {
    if (const int code = prepare(); code != kOk) return code;
    return options_.restore ? run_restore() : run_service();
  }

 private:
  int fail(int code, const std::string& sentence) {
    report_.error(sentence);
    return code;
  }
  int fail(int code, const core::Error& error) { return fail(code, core::to_sentence(error)); }

  int prepare() {
    auto loop = platform::SdEventLoop::create();
    if (!loop) return fail(kUnexpected, loop.error());
    loop_ = std::move(*loop);
    auto store = platform::FileLedgerStore::open(options_.runtime_dir);
    if (!store) return fail(kRuntimeDir, store.error());
    store_ = std::move(*store);
    auto connection = bus::open_bus(options_.bus);
    if (connection)
      connection_ = std::move(*connection);
    else if (!options_.restore)
      return fail(kNoBus, core::to_sentence(connection.error()) +
                              "; is the bus running, and is --bus right?");
    if (connection_) {
      attachment_.emplace(
          *connection_, loop_->native(), [this] { loop_->catch_up(); },
          [this] {
            report_.error("the connection to the bus is lost");
            loop_->quit(kNoBus);
          });
      units_ = std::make_unique<platform::SystemdUnits>(*connection_, options_.systemd_control_dir);
    } else {
      report_.warning("no bus: unit weights cannot be restored now and stay in the ledger");
      units_ = std::make_unique<platform::NoUnits>();
    }
    if (!options_.record.empty() && !options_.restore) {
      auto recorder = report::Recorder::open(options_.record);
      if (!recorder) return fail(kUsage, recorder.error());
      recorder_ = std::move(*recorder);
    }
    make_service();
    if (auto signals = loop_->on_stop_signal([this] { stop(kOk); }); !signals)
      return fail(kUnexpected, signals.error());
    if (auto started = service_->start(); !started) return fail(kRuntimeDir, started.error());
    return kOk;
  }

  void make_service() {
    topology_ = std::make_unique<platform::KfdTopology>(options_.sysfs_root);
    levels_ = std::make_unique<platform::LevelWriterProcess>(
        *loop_, platform::LevelWriterOptions{options_.gpu_write, options_.sysfs_root,
                                             config_.gpu.write_deadline, options_.dry_run});
    freezer_ = std::make_unique<platform::FreezerProcess>(
        *loop_, platform::FreezerOptions{options_.freezer, options_.cgroup_root});
    const auto make_helper = [this](const ports::GpuFacts& gpu) {
      platform::HelperProcessOptions helper{
          {options_.gpu_helper, gpu.pci, options_.sysfs_root, config_.gpu.helper_user}};
      helper.deadline = config_.gpu.helper_deadline;
      return std::make_unique<platform::HelperProcess>(*loop_, std::move(helper));
    };
    service_ = std::make_unique<app::Service>(
        app::Ports{processes_, scheduler_, *units_, *topology_, *levels_, *store_, *loop_, report_,
                   make_helper, open_agent_socket(), &meters_, recorder_.get(), &power_,
                   &idle_latency_, freezer_.get(), &cpu_energy_},
        config_, options_.dry_run);
  }

  [[nodiscard]] std::string agent_socket() const { return options_.runtime_dir + "/agent.sock"; }

  /// Everything else works without agents.
  ports::AgentHub* open_agent_socket() {
    if (!config_.agent.enabled || options_.restore) return nullptr;
    platform::AgentSocketOptions socket{agent_socket(), config_.agent.max_agents};
    auto opened = platform::AgentSocket::open(*loop_, processes_, report_, std::move(socket));
    if (!opened) {
      report_.warning(core::to_sentence(opened.error()) + ", going on without agents");
      return nullptr;
    }
    agents_ = std::move(*opened);
    return agents_.get();
  }

  [[nodiscard]] core::LaunchOptions launch_options() const {
    const bool usual = agent_socket() == agent_abi::kDefaultSocket;
    return {true, options_.agent_library, usual ? std::string() : agent_socket(), {}};
  }

  int run_service() {
    server_ = std::make_unique<bus::Server>(*connection_, *loop_, processes_, *service_,
                                            APUSCHED_VERSION, launch_options());
    if (auto owned = bus::own_name(*connection_, kBusName); !owned)
      return fail(owned.error().code == core::ErrorCode::contended ? kNameTaken : kNoBus,
                  owned.error());
    loop_->enable_watchdog();
    if (options_.dry_run) report_.info("dry run: nothing in the system will be changed");
    for (const auto& reason : service_->degraded()) report_.info(reason);
    report_.info(std::string("apuschedd ") + APUSCHED_VERSION + " is ready");
    sd_notify(0, "READY=1");
    return loop();
  }

  int run_restore() {
    stop(kOk);
    const int code = loop();
    return code == kOk && !service_->clean() ? static_cast<int>(kUnexpected) : code;
  }

  void stop(int code) {
    sd_notify(0, "STOPPING=1");
    service_->stop([this, code] { loop_->quit(code); });
  }

  int loop() {
    const auto code = loop_->run();
    return code ? *code : fail(kUnexpected, code.error());
  }

  const Options& options_;
  core::Config config_;
  report::LogReport report_;
  std::unique_ptr<platform::SdEventLoop> loop_;
  std::unique_ptr<platform::FileLedgerStore> store_;
  std::unique_ptr<sdbus::IConnection> connection_;
  std::optional<bus::LoopAttachment> attachment_;
  platform::ProcfsProcesses processes_{options_.cgroup_root};
  platform::LinuxScheduler scheduler_;
  platform::ProcfsMeters meters_;
  platform::SysfsPower power_{options_.sysfs_root};
  platform::PmQosLatency idle_latency_{options_.cpu_latency_device, options_.sysfs_root};
  platform::CpufreqEnergy cpu_energy_{options_.sysfs_root};
  std::unique_ptr<report::Recorder> recorder_;
  std::unique_ptr<ports::Units> units_;
  std::unique_ptr<platform::KfdTopology> topology_;
  std::unique_ptr<platform::LevelWriterProcess> levels_;
  std::unique_ptr<platform::FreezerProcess> freezer_;
  std::unique_ptr<platform::AgentSocket> agents_;
  std::unique_ptr<app::Service> service_;
  std::unique_ptr<bus::Server> server_;
};

int run_replay(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "apuschedd: cannot read %s\n", path.c_str());
    return kUsage;
  }
  const auto replayed = report::replay(file);
  if (!replayed) {
    std::fprintf(stderr, "apuschedd: %s: %s\n", path.c_str(),
                 core::to_sentence(replayed.error()).c_str());
    return kUsage;
  }
  std::printf("%s: %llu decisions, %llu different\n", path.c_str(),
              static_cast<unsigned long long>(replayed->steps),
              static_cast<unsigned long long>(replayed->different));
  if (replayed->different == 0) return kOk;
  std::fprintf(stderr, "apuschedd: %s\n", replayed->first_difference.c_str());
  return kUnexpected;
}

}  // namespace

int run_daemon(const Options& options) {
  if (!options.replay.empty()) return run_replay(options.replay);
  auto config = read_config(options);
  if (!config) return kBadConfiguration;
  if (options.check_config) {
    std::printf("%s: the configuration is good\n", options.config_file.c_str());
    return kOk;
  }
  if (options.bus == "system" && ::geteuid() != 0) {
    std::fprintf(stderr,
                 "apuschedd: on the system bus it must run as root: sudo systemctl start "
                 "apuschedd (to try it as a user: --bus=session --runtime-dir=DIR)\n");
    return kNotRoot;
  }
  return Daemon(options, std::move(*config)).run();
}

}  // namespace apusched
