// SPDX-License-Identifier: MIT
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "ctl/daemon_client.hpp"

namespace apusched::ctl {

inline GpuView sample_gpu() {
  GpuView gpu;
  gpu.object_path = "/org/apusched1/gpu/0";
  gpu.pci_address = "0000:04:00.0";
  gpu.name = "AMD Radeon 680M";
  gpu.isa = "gfx1035";
  gpu.compute_units = 12;
  gpu.performance_level = "high";
  gpu.performance_level_owner = "apusched";
  gpu.queue_count = 3;
  gpu.queue_limit = 24;
  gpu.helper = "ready";
  gpu.probe_mode = "continuous";
  gpu.telemetry.busy_percent = 87;
  gpu.telemetry.power_watts = 18.25;
  using std::chrono::nanoseconds;
  gpu.dispatch_latency["queue"] = {5000,
                                   2,
                                   1200,
                                   nanoseconds{8100},
                                   nanoseconds{12000},
                                   nanoseconds{45000},
                                   nanoseconds{2300000}};
  return gpu;
}

inline ProcessView sample_process() {
  ProcessView process;
  process.object_path = "/org/apusched1/process/1";
  process.pid = 4711;
  process.start_time = 123456;
  process.executable = "/usr/bin/llama-server";
  process.unit = "llama.service";
  process.user = 1000;
  process.work_class = "critical";
  process.profile = "llm-interactive";
  process.source = "dbus:0";
  process.threads = 14;
  process.members = 1;
  process.gpus = {"0000:04:00.0"};
  process.levers["nice"] = {"applied", "14 threads", "-10", "acts within llama.service"};
  process.levers["autogroup"] = {"unsupported", "", "-10", "a cpu cgroup overrides autogroups"};
  process.levers["cpu_weight"] = {"pending", "llama.service", "1000", ""};
  return process;
}

inline StatusView sample_status() {
  StatusView status;
  status.daemon = {"0.1.0", "active", {}, false, 1, {"background", "llm-interactive"}};
  status.gpus = {sample_gpu()};
  status.processes = {sample_process()};
  return status;
}

/// Answers from memory and keeps what it was asked to do.
class FakeDaemon final : public DaemonClient {
 public:
  Outcome<DaemonView> daemon() override { return answer(status.daemon); }
  Outcome<std::vector<ProcessView>> processes() override { return answer(status.processes); }
  Outcome<std::vector<GpuView>> gpus(bool fresh) override {
    asked_fresh = fresh;
    return answer(status.gpus);
  }
  Outcome<std::string> register_process(std::uint32_t pid, const std::string& profile,
                                        const RegisterOptions& options) override {
    registered = {pid, profile, options.include_children};
    expect_agent = options.expect_agent;
    return answer(std::string("/org/apusched1/process/1"));
  }
  Outcome<std::vector<ExplainLine>> explain(std::uint32_t pid) override {
    return answer(std::vector<ExplainLine>{{"nice", "-10", "applied to " + std::to_string(pid)}});
  }
  Outcome<std::vector<HistoryLine>> history(std::uint32_t count) override {
    return answer(std::vector<HistoryLine>(
        count, {1.5, 4711, "cpu_wait", "kept", "autogroup", "it helped", 2500, 40}));
  }
  Outcome<std::map<std::string, std::string>> launch_environment(const std::string& /*profile*/,
                                                                 bool agent) override {
    return answer(agent ? environment : std::map<std::string, std::string>{});
  }
  /// One answer each time it is asked, then there is room.
  Outcome<AdmissionView> admission(const std::string& profile) override {
    admission_asked.push_back(profile);
    if (admissions.empty()) return AdmissionView{};
    auto next = admissions.front();
    admissions.pop_front();
    return answer(next);
  }
  Outcome<void> unregister(const std::string& object_path) override {
    if (failure) return tl::unexpected(*failure);
    released.push_back(object_path);
    return {};
  }

  StatusView status = sample_status();
  std::optional<Failure> failure;
  std::map<std::string, std::string> environment{{"HSA_TOOLS_LIB", "/usr/lib/agent.so"}};
  bool expect_agent = false;
  std::deque<AdmissionView> admissions;
  std::vector<std::string> admission_asked;
  bool asked_fresh = false;
  std::tuple<std::uint32_t, std::string, bool> registered{0, "", false};
  std::vector<std::string> released;

 private:
  template <typename T>
  Outcome<T> answer(T value) {
    if (failure) return tl::unexpected(*failure);
    return value;
  }
};

}  // namespace apusched::ctl
