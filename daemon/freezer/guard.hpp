// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <string>

#include "freezer/duty_cycles.hpp"
#include "freezer/order.hpp"
#include "platform/unique_fd.hpp"

namespace apusched::freezer {

/// Stops and lets run what the daemon orders, and lets everything run when the daemon goes silent,
/// is gone, or a signal ends us. Owner of who is stopped. One thread.
class Guard {
 public:
  /// `root` is the cgroup v2 tree.
  Guard(platform::UniqueFd socket, std::string root)
      : socket_(std::move(socket)), root_(std::move(root)) {}

  /// Until the daemon closes the socket or `stop_fd` becomes readable; then nothing is stopped any
  /// more. False where it ends because of a bad order or a failure of its own.
  [[nodiscard]] bool run(int stop_fd);

 private:
  [[nodiscard]] bool wait(int stop_fd);
  /// False: the daemon is gone, or has sent what is no order.
  [[nodiscard]] bool take_order();
  [[nodiscard]] int obey(const Order& order);
  void turn();
  /// Errno; EBUSY where the state is not the one that we left.
  [[nodiscard]] int change(const DutyCycles::Step& step) const;
  void let_all_run();

  platform::UniqueFd socket_;
  std::string root_;
  DutyCycles cycles_;
  std::map<std::string, int> lost_;  ///< units that were given up, and why, until let go
  bool good_ = true;
};

}  // namespace apusched::freezer
