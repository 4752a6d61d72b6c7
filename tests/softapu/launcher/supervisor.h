// SPDX-License-Identifier: MIT
// Serves one GPU of a session: answers clients, reaps dead ones, owns the live files, applies the
// level that somebody wrote. One thread; it sleeps without a timer while no client has a queue, and
// while nothing moves.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "device/shared_device.h"
#include "launcher/cpu_load.h"
#include "session/layout.h"
#include "sysfs/hidden_files.h"
#include "sysfs/live.h"

namespace apusched::softapu {

struct SupervisorOptions {
  Traps traps;
  CpuLoad cpu_load;
};

class Supervisor {
 public:
  // Blocks the signals it handles (INT, TERM, HUP, QUIT, CHLD) in this thread. Throws
  // std::system_error.
  // `gpu`: its number; only that of the first handles signals, and the others must be given to it.
  Supervisor(const std::filesystem::path& directory, const MachineModel& model, std::size_t gpu,
             const SupervisorOptions& options);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // With a child: until it ends, passing signals on to it; its wait status. Without: until a
  // signal, 0.
  int run(std::optional<pid_t> child);
  // Is served by run() too. It outlives this.
  void serve_also(Supervisor& other);

 private:
  struct Connection {
    int socket = -1;
    int pidfd = -1;
    std::uint32_t pid = 0;
    std::optional<std::uint32_t> client;
    std::set<std::uint32_t> queues;
  };

  void watch(int fd);
  void take_signals();
  // Handles what has happened. False: run() is to end.
  bool dispatch(std::optional<pid_t> child, int timeout_ms);
  void on_accept();
  void on_connection(int fd);
  void on_request(Connection& connection, const Request& request);
  void end(int socket);
  void on_level_event();
  void on_timer();
  bool on_signal(std::optional<pid_t> child);
  void on_faults();
  [[nodiscard]] std::vector<std::filesystem::path> files_of_the_device() const;
  // `may_rest`: nothing has happened but time. True: and nothing will move until somebody tells.
  bool refresh(bool may_rest = false);
  // After an event: shows what there is, and keeps showing what moves.
  void set_timer();
  void run_timer(bool on);

  DeviceDescription description_;
  std::size_t gpu_;
  std::filesystem::path directory_;
  TreePaths paths_;
  std::uint32_t card_;
  LiveTree tree_;
  HiddenFiles hidden_;
  CpuLoad cpu_load_;
  std::unique_ptr<SharedDevice> device_;
  int epoll_ = -1, listen_ = -1, signals_ = -1, inotify_ = -1, timer_ = -1;
  bool timer_on_ = false;
  std::map<int, Connection> connections_;  // by socket
  std::map<int, int> pidfds_;              // pidfd -> socket
  std::map<int, Supervisor*> others_;      // by their epoll descriptor
  std::int64_t last_busy_ns_ = 0;
  Nanoseconds last_refresh_{0};
  std::uint32_t next_pasid_ = 32769;
  int status_ = 0;
};

}  // namespace apusched::softapu
