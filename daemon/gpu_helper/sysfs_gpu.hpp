// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "core/result.hpp"
#include "core/types.hpp"

/// Finding and reading one GPU's sysfs files. Used by the helper and the level writer.
namespace apusched::gpu_helper {

/// At most this much of a sysfs file is read; the longest that is used here has a dozen lines.
inline constexpr std::size_t kMaxSysfsText = 4096;

/// Directory of the PCI device below `sysfs_root` ("/sys"): bus/pci/devices, else class/drm.
/// `gone` when there is none. Found anew each time: a hot reset may replace it.
[[nodiscard]] core::Result<std::string> find_device(const std::string& sysfs_root,
                                                    const core::PciAddress& gpu);
/// The hwmon directory whose `name` file says amdgpu; its number is not stable.
[[nodiscard]] std::optional<std::string> find_hwmon(const std::string& device);
/// Whole text, NUL bytes included. Fails with `gone`, `denied` or `failed`; may block in the
/// kernel while the GPU resets.
[[nodiscard]] core::Result<std::string> read_sysfs(const std::string& path);

/// The kernel's errno as a core error; `doing` is "read" or "write".
[[nodiscard]] core::Error sysfs_error(int error_number, std::string doing, std::string path);

}  // namespace apusched::gpu_helper
