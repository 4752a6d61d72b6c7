// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/views.hpp"
#include "core/config.hpp"
#include "ports/event_loop.hpp"
#include "ports/gpu.hpp"
#include "ports/report.hpp"

namespace apusched::app {

/// The GPUs of the machine: their helpers, probe modes, latency windows and last telemetry.
/// Owner of all of that. Event-loop thread.
class GpuWatch final : public ports::GpuHelper::Events {
 public:
  using HelperFactory =
      std::function<std::unique_ptr<ports::GpuHelper>(const ports::GpuFacts& facts)>;
  using GpuCallback = std::function<void(const core::PciAddress&)>;
  /// The time is that at which the reading was asked for, or earlier.
  using LevelSeen = std::function<void(const core::PciAddress&, core::PerformanceLevel,
                                       std::chrono::steady_clock::time_point)>;

  GpuWatch(ports::GpuTopology& topology, ports::EventLoop& loop, ports::Report& report,
           const core::Config& config, HelperFactory make_helper);

  /// Finds the GPUs; without any, `why_none` says why GPU functions are off.
  void discover();
  void on_changed(GpuCallback changed) { changed_ = std::move(changed); }
  void on_level_seen(LevelSeen seen) { level_seen_ = std::move(seen); }

  /// GPUs on which a process has KFD queues.
  [[nodiscard]] std::vector<core::PciAddress> gpus_of(core::Pid pid);
  /// Called once per scan: which GPUs registered processes have queues on, and on which of these
  /// one of them has done work since the last scan. Sets each probe's mode.
  void update(const std::map<core::PciAddress, bool>& worked);
  /// Everything off; helpers end.
  void stop();
  /// Fresh telemetry, then `done` (also when the helper does not answer in time).
  void refresh(const core::PciAddress& gpu, std::function<void(core::Result<void>)> done);

  /// What was seen since it was last taken: mean of the dispatches timed (kernels where there are
  /// any, else barrier packets), and readings that are not old.
  struct Seen {
    std::optional<double> latency_us;
    std::optional<double> watts;
    std::optional<double> celsius;
    bool busy = false;
  };
  [[nodiscard]] Seen take_seen(const core::PciAddress& gpu);

  [[nodiscard]] std::vector<GpuView> views() const;
  [[nodiscard]] std::vector<std::string> degraded() const;
  [[nodiscard]] bool any() const { return !gpus_.empty(); }

  void on_sample(const core::PciAddress& gpu, const ports::ProbeSample& sample) override;
  void on_telemetry(const core::PciAddress& gpu, const ports::GpuTelemetry& telemetry) override;
  void on_state(const core::PciAddress& gpu, ports::HelperState state,
                const std::string& reason) override;

 private:
  struct Waiter {
    std::function<void(core::Result<void>)> done;
    std::unique_ptr<ports::Subscription> timeout;
  };
  struct Gpu {
    explicit Gpu(ports::GpuFacts gpu_facts) : facts(std::move(gpu_facts)) {}
    ports::GpuFacts facts;
    std::unique_ptr<ports::GpuHelper> helper;
    ports::ProbeMode mode = ports::ProbeMode::off;
    int idle_scans = 0;
    std::map<core::ProbeSource, core::LatencyWindow> windows;
    struct Fresh {
      std::chrono::nanoseconds sum{0};
      std::uint32_t count = 0;
    };
    std::map<core::ProbeSource, Fresh> fresh;  ///< since it was last taken
    std::optional<ports::GpuTelemetry> telemetry;
    std::chrono::steady_clock::time_point telemetry_at{};
    std::chrono::steady_clock::time_point telemetry_asked{};     ///< by the scan
    std::optional<std::chrono::steady_clock::time_point> asked;  ///< first since the last answer
    std::vector<Waiter> waiters;
    std::string trouble;  ///< why it does not work; until a sample completes, or nobody needs it
    bool gone = false;    ///< when last looked at by update()
  };

  void set_mode(Gpu& gpu, ports::ProbeMode mode);
  void note_presence(Gpu& gpu);
  void ask(Gpu& gpu);
  [[nodiscard]] Gpu* find(const core::PciAddress& address);
  static void answer(Gpu& gpu, const core::Result<void>& result);
  [[nodiscard]] GpuView view_of(const Gpu& gpu) const;

  ports::GpuTopology& topology_;
  ports::EventLoop& loop_;
  ports::Report& report_;
  const core::Config& config_;
  HelperFactory make_helper_;
  GpuCallback changed_;
  LevelSeen level_seen_;
  std::vector<std::unique_ptr<Gpu>> gpus_;
  std::string why_none_;
};

}  // namespace apusched::app
