// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "settings/settings.hpp"

namespace apusched::settings {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

tl::unexpected<std::vector<SettingsError>> unreadable(const std::string& path, std::string expected,
                                                      std::string got) {
  return tl::unexpected(
      std::vector<SettingsError>{{path, 1, 1, "file", std::move(expected), std::move(got)}});
}

std::string reason(int error) {
  return std::generic_category().message(error);
}

}  // namespace

Parsed load(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) return unreadable(path, "a readable file", reason(errno));
  struct stat facts {};
  if (fstat(file.get(), &facts) != 0) return unreadable(path, "a readable file", reason(errno));
  if (!S_ISREG(facts.st_mode)) return unreadable(path, "a regular file", "something else");

  std::string text;
  std::array<char, 16384> block{};
  while (text.size() <= kMaxFileBytes) {
    const ssize_t count = read(file.get(), block.data(), block.size());
    if (count == 0) return parse(text, path);
    if (count > 0) text.append(block.data(), static_cast<std::size_t>(count));
    if (count < 0 && errno != EINTR) return unreadable(path, "a readable file", reason(errno));
  }
  return unreadable(path, "1 MiB at most", "a larger file");
}

}  // namespace apusched::settings
