// SPDX-License-Identifier: MIT
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "platform/unique_fd.hpp"
#include "ports/event_loop.hpp"
#include "ports/gpu.hpp"

namespace apusched::platform {

struct LevelWriterOptions {
  std::string program;  ///< absolute path of apusched-gpu-write, or a test's wrapper
  std::string sysfs_root = "/sys";
  std::chrono::milliseconds deadline{3000};  ///< after it the process is killed: `timed_out`
  bool dry_run = false;                      ///< all checks, no write
};

/// What one run of the writer is to do.
struct LevelCall {
  core::PciAddress gpu;
  struct Change {
    core::PerformanceLevel level;
    core::PerformanceLevel expected;
  };
  std::optional<Change> change;  ///< nothing: read only
};

/// ports::LevelWriter by one short-lived process per call, one call at a time per GPU, the rest
/// queued (at most 32 per GPU). Event-loop thread. Each callback comes exactly once, never from
/// within read() or write(); none comes after destruction, which kills what still runs.
class LevelWriterProcess final : public ports::LevelWriter {
 public:
  LevelWriterProcess(ports::EventLoop& loop, LevelWriterOptions options);
  ~LevelWriterProcess() override;
  LevelWriterProcess(const LevelWriterProcess&) = delete;
  LevelWriterProcess& operator=(const LevelWriterProcess&) = delete;

  void read(const core::PciAddress& gpu, Callback done) override;
  void write(const core::PciAddress& gpu, core::PerformanceLevel level,
             core::PerformanceLevel expected, Callback done) override;

 private:
  struct Waiting {
    LevelCall call;
    Callback done;
  };
  /// One process from its start to its reaping.
  struct Running {
    int pid = 0;
    UniqueFd output;
    std::string text;
    Callback done;  ///< empty once answered: a process that does not die keeps its GPU busy
    std::unique_ptr<ports::Subscription> output_watch;
    std::unique_ptr<ports::Subscription> exit_watch;
    std::unique_ptr<ports::Subscription> deadline;
  };
  struct Gpu {
    std::deque<Waiting> waiting;
    std::unique_ptr<Running> running;
  };

  void enqueue(LevelCall call, Callback done);
  void start_next(const core::PciAddress& gpu);
  void on_output(const core::PciAddress& gpu);
  void on_deadline(const core::PciAddress& gpu);
  void on_exit(const core::PciAddress& gpu, int status);
  void answer_later(Callback done, core::Result<ports::LevelReading> result);

  ports::EventLoop& loop_;
  LevelWriterOptions options_;
  std::map<core::PciAddress, Gpu> gpus_;
  /// Deferred callbacks check it: they may run after this object's end.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// The same without an event loop, for `apuschedd --restore`. Blocks for at most the deadline and
/// a second.
[[nodiscard]] core::Result<ports::LevelReading> run_level_call_blocking(
    const LevelWriterOptions& options, const LevelCall& call);
[[nodiscard]] core::Result<ports::LevelReading> write_level_blocking(
    const LevelWriterOptions& options, const core::PciAddress& gpu, core::PerformanceLevel level,
    core::PerformanceLevel expected);

}  // namespace apusched::platform
