// SPDX-License-Identifier: MIT
#include "gpu_helper/sysfs_gpu.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace apusched::gpu_helper {

namespace fs = std::filesystem;

namespace {

/// A directory is hostile input too: a loop over it ends here.
constexpr int kMaxEntries = 256;

bool directory_exists(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

template <typename Match>
std::optional<std::string> find_entry(const fs::path& directory, Match&& match) {
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (int seen = 0; !error && entry != fs::directory_iterator() && seen < kMaxEntries; ++seen) {
    if (match(entry->path())) return entry->path().string();
    entry.increment(error);
  }
  return std::nullopt;
}

}  // namespace

core::Result<std::string> find_device(const std::string& sysfs_root, const core::PciAddress& gpu) {
  const fs::path root(sysfs_root);
  const fs::path direct = root / "bus/pci/devices" / gpu.text();
  if (directory_exists(direct)) return direct.string();
  const auto card = find_entry(root / "class/drm", [&gpu](const fs::path& path) {
    if (!path.filename().string().starts_with("card")) return false;
    std::error_code error;
    return fs::canonical(path / "device", error).filename() == gpu.text() && !error;
  });
  if (card) return (fs::path(*card) / "device").string();
  return core::fail(core::ErrorCode::gone, "find", gpu.text(),
                    "no such PCI device below " + sysfs_root);
}

std::optional<std::string> find_hwmon(const std::string& device) {
  return find_entry(fs::path(device) / "hwmon", [](const fs::path& path) {
    const auto name = read_sysfs((path / "name").string());
    return name && (*name == "amdgpu\n" || *name == "amdgpu");
  });
}

core::Result<std::string> read_sysfs(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return tl::unexpected(sysfs_error(errno, "read", path));
  std::string text(kMaxSysfsText, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      close(fd);
      return tl::unexpected(sysfs_error(error, "read", path));
    }
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  close(fd);
  text.resize(size);
  return text;
}

core::Error sysfs_error(int error_number, std::string doing, std::string path) {
  using core::ErrorCode;
  const auto text = std::generic_category().message(error_number);
  switch (error_number) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
      return {ErrorCode::gone, std::move(doing), std::move(path), text};
    case EPERM:
      // amdgpu_pm.c: EPERM from these files is not about rights.
      return {ErrorCode::denied, std::move(doing), std::move(path),
              text + "; the GPU is being reset or is suspended"};
    case EACCES:
    case EROFS:
    case ELOOP:
      return {ErrorCode::denied, std::move(doing), std::move(path), text};
    case EINVAL:
    case EOPNOTSUPP:
      return {ErrorCode::unsupported, std::move(doing), std::move(path), text};
    default:
      return {ErrorCode::failed, std::move(doing), std::move(path), text};
  }
}

}  // namespace apusched::gpu_helper
