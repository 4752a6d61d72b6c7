// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "agent/descriptor.hpp"

namespace apusched::agent {

/// Tells when a socket may have come into being, by inotify on its directory, or on the nearest
/// parent that exists. Owned by the agent's thread.
class SocketWatch {
 public:
  /// From now on; false where inotify cannot be had (a limit of the user, no right to read).
  bool arm(const std::string& path) noexcept;
  void disarm() noexcept { inotify_.reset(); }
  [[nodiscard]] int descriptor() const noexcept { return inotify_.get(); }
  [[nodiscard]] bool is_armed() const noexcept { return inotify_.is_open(); }
  /// When descriptor() is readable: it is worth while to try, and then to arm again.
  [[nodiscard]] bool has_news() noexcept;

  void leave_to_parent() noexcept { inotify_.reset(); }

 private:
  Descriptor inotify_;
  std::string awaited_;  // name of what is missing in the directory watched
};

}  // namespace apusched::agent
