// SPDX-License-Identifier: MIT
#include "freezer/group_file.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "freezer/order.hpp"
#include "platform/unique_fd.hpp"

namespace apusched::freezer {
namespace {

using platform::UniqueFd;

tl::unexpected<std::error_code> unexpected_errno(int error) {
  return tl::unexpected(std::error_code(error, std::generic_category()));
}

/// The directory first: a group that is gone is told from one without the file.
tl::expected<UniqueFd, std::error_code> open_freeze(const std::string& root,
                                                    const std::string& path, int flags) {
  if (!is_group_path(path)) return unexpected_errno(EINVAL);
  const UniqueFd top(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!top) return unexpected_errno(errno);
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  const UniqueFd group(
      static_cast<int>(::syscall(SYS_openat2, top.get(), path.c_str() + 1, &how, sizeof(how))));
  if (!group) return unexpected_errno(errno);
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC | O_NOCTTY;
  UniqueFd file(
      static_cast<int>(::syscall(SYS_openat2, group.get(), "cgroup.freeze", &how, sizeof(how))));
  if (!file) return unexpected_errno(errno == ENOENT ? EOPNOTSUPP : errno);
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
