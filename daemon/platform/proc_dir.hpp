// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "core/types.hpp"
#include "platform/unique_fd.hpp"

namespace apusched::platform {

/// A directory of /proc whose entries are PIDs or TIDs. For what is read at each registration and
/// in each scan: opendir(3) allocates 32 KiB a time, and names relative to an open directory spare
/// the kernel a walk. Thread-compatible.
class ProcDir {
 public:
  /// Large enough for /proc/PID/stat: 52 numbers and a name of at most 64 bytes
  /// (linux fs/proc/array.c).
  using Text = std::array<char, 2048>;

  [[nodiscard]] static core::Result<ProcDir> open(std::string path);

  /// Calls `visit(core::Pid)` with every numeric entry until it answers false.
  template <typename Visit>
  [[nodiscard]] core::Result<void> for_each(Visit visit) {
    alignas(std::max_align_t) std::array<std::byte, 4096> entries;
    for (;;) {
      const auto bytes = read_entries(entries.data(), entries.size());
      if (!bytes) return tl::unexpected(bytes.error());
      if (*bytes == 0) return {};
      for (std::size_t at = 0; at < *bytes;) {
        const auto [name, length] = entry_at(entries.data() + at);
        at += length;
        const auto number = core::Pid::parse(name);
        if (number && !visit(*number)) return {};
      }
    }
  }

  /// The text of the file `name` of the entry, in one read(2): whole for files that the kernel
  /// makes as a single record. Empty where it cannot be read.
  [[nodiscard]] std::string_view read(core::Pid entry, std::string_view name, Text& text) const;

 private:
  struct Entry {
    std::string_view name;
    std::size_t length;  ///< distance to the next entry
  };
  ProcDir(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  [[nodiscard]] core::Result<std::size_t> read_entries(std::byte* buffer, std::size_t size);
  [[nodiscard]] static Entry entry_at(const std::byte* where);

  std::string path_;
  UniqueFd fd_;
};

}  // namespace apusched::platform
