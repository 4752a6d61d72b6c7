// SPDX-License-Identifier: MIT
#include "platform/proc_dir.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "platform/errno_error.hpp"

namespace apusched::platform {

core::Result<ProcDir> ProcDir::open(std::string path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return tl::unexpected(errno_error(errno, "list", path));
  return ProcDir(std::move(path), std::move(fd));
}

core::Result<std::size_t> ProcDir::read_entries(std::byte* buffer, std::size_t size) {
  const auto bytes = ::getdents64(fd_.get(), buffer, size);
  if (bytes < 0) return tl::unexpected(errno_error(errno, "list", path_));
  return static_cast<std::size_t>(bytes);
}

ProcDir::Entry ProcDir::entry_at(const std::byte* where) {
  const auto* entry = reinterpret_cast<const dirent64*>(where);
  return {entry->d_name, entry->d_reclen};
}

std::string_view ProcDir::read(core::Pid entry, std::string_view name, Text& text) const {
  // A number of at most 10 digits, a slash, a short name and the final zero.
  std::array<char, 64> path{};
  constexpr std::size_t kDigits = 10;
  if (name.size() + kDigits + 2 > path.size()) return {};
  char* end = std::to_chars(path.data(), path.data() + kDigits, entry.value()).ptr;
  *end++ = '/';
  std::ranges::copy(name, end);
  const UniqueFd fd(::openat(fd_.get(), path.data(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return {};
  ssize_t got = 0;
  do {
    got = ::read(fd.get(), text.data(), text.size());
  } while (got < 0 && errno == EINTR);
  return got > 0 ? std::string_view(text.data(), static_cast<std::size_t>(got))
                 : std::string_view();
}

}  // namespace apusched::platform
