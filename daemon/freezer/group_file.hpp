// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <system_error>
#include <tl/expected.hpp>

namespace apusched::freezer {

/// Where the cgroup v2 tree is: `cgroup_root` itself, or "unified" in it (systemd's hybrid layout).
[[nodiscard]] std::string unified_root(const std::string& cgroup_root);

/// cgroup.freeze of one group (linux Documentation/admin-guide/cgroup-v2.rst). Freezing is done
/// when the kernel gets to it, not when the write returns; it does not end GPU work that was
/// submitted. `path` is not trusted: nothing outside of `root` is reached, and nothing through a
/// symbolic link. Errors: ENOENT where the group is gone; EOPNOTSUPP where it has no such file (not
/// cgroup v2, or a kernel before 5.2).
[[nodiscard]] tl::expected<bool, std::error_code> is_frozen(const std::string& root,
                                                            const std::string& path);
[[nodiscard]] tl::expected<void, std::error_code> set_frozen(const std::string& root,
                                                             const std::string& path, bool frozen);

}  // namespace apusched::freezer
