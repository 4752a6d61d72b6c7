// SPDX-License-Identifier: MIT
#include "gpu_helper/level_change.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "gpu_helper/protocol.hpp"
#include "gpu_helper/sysfs_gpu.hpp"

namespace apusched::gpu_helper {

using core::ErrorCode;
using core::PerformanceLevel;

namespace {

constexpr const char* kFile = "/power_dpm_force_performance_level";

core::Result<std::string> level_path(const LevelTarget& target) {
  auto device = find_device(target.sysfs_root, target.gpu);
  if (!device) return device;
  return *device + kFile;
}

/// Without the file the GPU is there still, and with it the level it had.
core::Error explained(const LevelTarget& target, core::Error error) {
  if (error.code != ErrorCode::gone || !find_device(target.sysfs_root, target.gpu)) return error;
  return {ErrorCode::failed, error.operation, error.target,
          std::string(kFile + 1) + " of this GPU is missing: " + error.detail};
}

core::Result<PerformanceLevel> read_level_file(const LevelTarget& target, const std::string& path) {
  const auto text = read_sysfs(path);
  if (!text) return tl::unexpected(explained(target, text.error()));
  if (const auto level = core::parse_performance_level(*text)) return *level;
  return core::fail(ErrorCode::failed, "read", path,
                    "holds no known level but \"" + printable(*text, 60) + "\"");
}

/// One write(): sysfs takes a value whole or not at all.
core::Result<void> write_level_file(const std::string& path, std::string_view word) {
  // O_TRUNC means nothing to sysfs; in a tree of plain files it drops a longer old word.
  const int fd = open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return tl::unexpected(sysfs_error(errno, "write", path));
  ssize_t written = -1;
  do {
    written = write(fd, word.data(), word.size());
  } while (written < 0 && errno == EINTR);
  const int error = errno;
  close(fd);
  if (written < 0) return tl::unexpected(sysfs_error(error, "write", path));
  if (static_cast<std::size_t>(written) != word.size())
    return core::fail(ErrorCode::failed, "write", path, "was written in part only");
  return {};
}

std::string quoted(PerformanceLevel level) {
  return "\"" + std::string(core::to_string(level)) + "\"";
}

}  // namespace

core::Result<PerformanceLevel> read_level(const LevelTarget& target) {
  const auto path = level_path(target);
  if (!path) return tl::unexpected(path.error());
  return read_level_file(target, *path);
}

core::Result<PerformanceLevel> change_level(const LevelTarget& target, const LevelChange& change) {
  const auto path = level_path(target);
  if (!path) return tl::unexpected(path.error());
  const auto before = read_level_file(target, *path);
  if (!before || *before == change.level) return before;
  if (*before != change.expected)
    return core::fail(ErrorCode::contended, "write", *path,
                      "the level in force is " + quoted(*before) + ", not " +
                          quoted(change.expected) + ": someone else set it");
  if (change.dry_run) return change.level;
  if (const auto written = write_level_file(*path, core::to_string(change.level)); !written) {
    auto error = explained(target, written.error());
    if (error.code == ErrorCode::unsupported)
      error.detail = "this GPU does not take the level " + quoted(change.level);
    return tl::unexpected(error);
  }
  const auto after = read_level_file(target, *path);
  if (!after || *after == change.level) return after;
  return core::fail(ErrorCode::failed, "write", *path,
                    "wrote " + quoted(change.level) + " but " + quoted(*after) + " reads back");
}

}  // namespace apusched::gpu_helper
