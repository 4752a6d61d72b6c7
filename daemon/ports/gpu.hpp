// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "core/cu_plan.hpp"
#include "core/result.hpp"
#include "core/types.hpp"

namespace apusched::ports {

/// What the KFD topology says of one GPU (in-memory sysfs files of amdkfd: they never block).
struct GpuFacts {
  core::PciAddress pci;
  std::string isa;   ///< "gfx1035"
  std::string name;  ///< marketing name where known, else the ISA
  std::uint32_t compute_units = 0;
  std::uint32_t kfd_gpu_id = 0;
  std::uint32_t queue_limit = 0;  ///< num_cp_queues: more compute queues are oversubscribed
  bool apu = false;
  core::CuGeometry geometry{};
};

/// Which processes have KFD queues: /sys/class/kfd/kfd/proc/PID/queues.
class GpuTopology {
 public:
  virtual ~GpuTopology() = default;
  /// Every GPU of the machine; empty when there is none or no amdkfd. Reason in `why_none`.
  [[nodiscard]] virtual std::vector<GpuFacts> discover(std::string& why_none) = 0;
  /// False once the driver lists the GPU no longer: removed, or taken from the driver.
  [[nodiscard]] virtual bool present(std::uint32_t kfd_gpu_id) = 0;
  /// Compute queues of one process by kfd gpu id; empty vector: no GPU process.
  [[nodiscard]] virtual std::vector<std::uint32_t> queue_gpu_ids(core::Pid pid) = 0;
  /// Compute queues of all processes on one GPU.
  [[nodiscard]] virtual std::uint32_t queue_count(std::uint32_t kfd_gpu_id) = 0;
};

struct LevelReading {
  core::PerformanceLevel level;
};

/// Reads and writes power_dpm_force_performance_level in a short-lived process of its own:
/// sysfs can block during a reset. Answers arrive later on the event loop.
class LevelWriter {
 public:
  virtual ~LevelWriter() = default;
  using Callback = std::function<void(core::Result<LevelReading>)>;
  virtual void read(const core::PciAddress& gpu, Callback done) = 0;
  /// Writes only where the level in force is `expected` (else `contended`), then reads back.
  virtual void write(const core::PciAddress& gpu, core::PerformanceLevel level,
                     core::PerformanceLevel expected, Callback done) = 0;
};

struct ProbeSample {
  core::ProbeSource source = core::ProbeSource::queue;
  bool lost = false;                    ///< the deadline passed; latency is then meaningless
  std::chrono::nanoseconds latency{0};  ///< host steady clock: submit to wake-up
  std::optional<std::chrono::nanoseconds> device{};  ///< ROCr profiling timestamps where valid
};

/// One reading of everything; a missing, empty or absurd file is no value, never a number.
struct GpuTelemetry {
  std::optional<std::uint32_t> busy_percent;
  std::optional<double> temperature_celsius;
  std::optional<double> power_watts;
  std::optional<std::uint32_t> shader_clock_mhz;
  std::optional<std::uint64_t> vram_used_bytes;
  std::optional<std::uint64_t> gtt_used_bytes;
  std::optional<core::PerformanceLevel> level;       ///< read from sysfs
  std::optional<core::PerformanceLevel> level_rsmi;  ///< the same by rocm-smi-lib, cross-check
};

enum class HelperState { absent, starting, ready, degraded };

/// What the probe should do now. `off` closes the queue and the runtime: on some APUs two idle
/// ROCm clients pin the clock at its maximum (about 25 W on Strix Halo).
enum class ProbeMode { off, burst, continuous };

/// One supervised helper process per GPU. Restarted with back-off after death, silence or garbage.
class GpuHelper {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    virtual void on_sample(const core::PciAddress& gpu, const ProbeSample& sample) = 0;
    virtual void on_telemetry(const core::PciAddress& gpu, const GpuTelemetry& telemetry) = 0;
    /// `reason` is a sentence; empty when ready.
    virtual void on_state(const core::PciAddress& gpu, HelperState state,
                          const std::string& reason) = 0;
  };
  virtual ~GpuHelper() = default;
  virtual void set_events(Events* events) = 0;
  /// Starts the helper process when it is needed; `off` lets it end after a short linger.
  virtual void set_mode(ProbeMode mode, const core::ProbeSettings& settings) = 0;
  /// Asks for one telemetry record (starts the helper where needed).
  virtual void request_telemetry() = 0;
  [[nodiscard]] virtual HelperState state() const = 0;
  [[nodiscard]] virtual std::string reason() const = 0;
};

}  // namespace apusched::ports
