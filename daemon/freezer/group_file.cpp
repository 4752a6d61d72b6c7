// SPDX-License-Identifier: MIT
#include "freezer/group_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "freezer/order.hpp"
#include "platform/unique_fd.hpp"

namespace apusched::freezer {
namespace {

using platform::UniqueFd;

tl::unexpected<std::error_code> unexpected_errno(int error) {
  return tl::unexpected(std::error_code(error, std::generic_category()));
}

/// `name` in `folder` itself, through no symbolic link. One name at a time, because openat2(2),
/// which could do it at once, is not to be had with RestrictSUIDSGID= of our unit: systemd's filter
/// cannot look into its argument.
tl::expected<UniqueFd, std::error_code> open_in(const UniqueFd& folder, const char* name,
                                                int flags) {
  UniqueFd fd(::openat(folder.get(), name, flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY));
  if (!fd) return unexpected_errno(errno);
  return fd;
}

/// The same for a group below one, which is in the same file system. (Of a plain file this would
/// say nothing: overlayfs shows it with the device of its layer.)
tl::expected<UniqueFd, std::error_code> open_group_in(const UniqueFd& folder, const char* name) {
  auto fd = open_in(folder, name, O_PATH | O_DIRECTORY);
  if (!fd) return fd;
  struct stat above {};
  struct stat found {};
  if (::fstat(folder.get(), &above) != 0 || ::fstat(fd->get(), &found) != 0)
    return unexpected_errno(errno);
  if (above.st_dev != found.st_dev) return unexpected_errno(EXDEV);
  return fd;
}

/// The directory first: a group that is gone is told from one without the file.
tl::expected<UniqueFd, std::error_code> open_freeze(const std::string& root,
                                                    const std::string& path, int flags) {
  if (!is_group_path(path)) return unexpected_errno(EINVAL);
  UniqueFd group(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!group) return unexpected_errno(errno);
  for (std::size_t begin = 1; begin < path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    auto below = open_group_in(group, path.substr(begin, end - begin).c_str());
    if (!below) return below;
    group = std::move(*below);
    begin = end + 1;
  }
  auto file = open_in(group, "cgroup.freeze", flags);
  if (!file && file.error().value() == ENOENT) return unexpected_errno(EOPNOTSUPP);
  return file;
}

}  // namespace

std::string unified_root(const std::string& cgroup_root) {
  const auto hybrid = cgroup_root + "/unified";
  return ::access((hybrid + "/cgroup.controllers").c_str(), F_OK) == 0 ? hybrid : cgroup_root;
}

tl::expected<bool, std::error_code> is_frozen(const std::string& root, const std::string& path) {
  const auto file = open_freeze(root, path, O_RDONLY);
  if (!file) return tl::unexpected(file.error());
  char state = 0;
  const auto got = ::read(file->get(), &state, 1);
  if (got < 0) return unexpected_errno(errno);
  if (got != 1 || (state != '0' && state != '1')) return unexpected_errno(EPROTO);
  return state == '1';
}

tl::expected<void, std::error_code> set_frozen(const std::string& root, const std::string& path,
                                               bool frozen) {
  const auto file = open_freeze(root, path, O_WRONLY);
  if (!file) return tl::unexpected(file.error());
  if (::write(file->get(), frozen ? "1" : "0", 1) != 1) return unexpected_errno(errno);
  return {};
}

}  // namespace apusched::freezer
