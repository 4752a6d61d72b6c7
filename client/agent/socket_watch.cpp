// SPDX-License-Identifier: MIT
#include "agent/socket_watch.hpp"

#include <sys/inotify.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace apusched::agent {
namespace {

constexpr std::uint32_t kEvents =
    IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
constexpr std::uint32_t kGone = IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_Q_OVERFLOW;

}  // namespace

bool SocketWatch::arm(const std::string& path) noexcept {
  try {
    inotify_.reset(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    std::string directory = path;
    while (is_armed() && directory.size() > 1) {
      const std::size_t slash = directory.rfind('/');
      if (slash == std::string::npos) break;
      awaited_ = directory.substr(slash + 1);
      directory.resize(slash == 0 ? 1 : slash);
      if (inotify_add_watch(inotify_.get(), directory.c_str(), kEvents) >= 0) return true;
      if (errno != ENOENT && errno != ENOTDIR) break;
    }
  } catch (...) {
    // no memory: as without inotify
  }
  disarm();
  return false;
}

bool SocketWatch::has_news() noexcept {
  bool news = false;
  alignas(inotify_event) char buffer[4096];
  for (;;) {
    const ssize_t length = read(inotify_.get(), buffer, sizeof buffer);
    if (length <= 0) return news;
    std::size_t offset = 0;
    while (offset + sizeof(inotify_event) <= static_cast<std::size_t>(length)) {
      inotify_event event{};
      std::memcpy(&event, buffer + offset, sizeof event);
      const char* name = buffer + offset + sizeof event;
      news = news || (event.mask & kGone) != 0 || (event.len > 0 && awaited_ == name);
      offset += sizeof event + event.len;
    }
  }
}

}  // namespace apusched::agent
