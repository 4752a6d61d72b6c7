// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/types.hpp"
#include "gpu_helper/probe.hpp"
#include "gpu_helper/probe_schedule.hpp"
#include "gpu_helper/protocol.hpp"
#include "gpu_helper/telemetry.hpp"

namespace apusched::gpu_helper {

struct HelperOptions {
  core::PciAddress gpu;
  int fd = 3;  ///< the SOCK_SEQPACKET end inherited from the daemon
  std::string sysfs_root = "/sys";
  bool use_rsmi = true;
};

/// The helper's one loop: commands in, samples out. Single thread; while a sample waits for its
/// completion (at most its deadline) commands wait too.
class Helper {
 public:
  explicit Helper(HelperOptions options);
  /// Returns when the daemon says so, closes its end, or the probe cannot go on.
  [[nodiscard]] ExitCode run();

 private:
  using TimePoint = ProbeSchedule::TimePoint;

  /// Why the loop ends; nothing: it goes on.
  [[nodiscard]] std::optional<ExitCode> receive();
  [[nodiscard]] std::optional<ExitCode> obey(const Command& command);
  [[nodiscard]] std::optional<ExitCode> take_sample();
  void set_mode(const SetMode& mode);
  void open_probe();
  void send_telemetry();
  void wait_for_work() const;
  void send(const Event& event);
  void report(StatusCode code, std::string text);
  void send_status();

  HelperOptions options_;
  TelemetryReader telemetry_;
  RsmiLevel rsmi_;
  ProbeSchedule schedule_;
  SetMode mode_;
  std::unique_ptr<Probe> probe_;     ///< open while mode_ is not off
  Status status_;                    ///< of the probe
  bool slow_files_ = false;          ///< the last readings were incomplete
  std::optional<TimePoint> end_at_;  ///< the probe could not be opened: make way for another
  std::uint64_t sequence_ = 0;
  bool connected_ = true;
};

}  // namespace apusched::gpu_helper
