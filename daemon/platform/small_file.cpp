// SPDX-License-Identifier: MIT
#include "platform/small_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "platform/errno_error.hpp"
#include "platform/unique_fd.hpp"

namespace apusched::platform {

core::Result<std::string> read_small_file(const std::string& path, std::size_t limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return tl::unexpected(errno_error(errno, "open", path));
  std::string text(limit, '\0');
  std::size_t used = 0;
  while (used < limit) {
    const auto got = ::read(fd.get(), text.data() + used, limit - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tl::unexpected(errno_error(errno, "read", path));
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  text.resize(used);
  return text;
}

core::Result<void> write_small_file(const std::string& path, const std::string& text) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return tl::unexpected(errno_error(errno, "open", path));
  ssize_t wrote = 0;
  do {
    wrote = ::write(fd.get(), text.data(), text.size());
  } while (wrote < 0 && errno == EINTR);
  if (wrote < 0) return tl::unexpected(errno_error(errno, "write", path));
  if (static_cast<std::size_t>(wrote) != text.size())
    return core::fail(core::ErrorCode::failed, "write", path, "short write");
  return {};
}

}  // namespace apusched::platform
