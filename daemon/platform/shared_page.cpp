// SPDX-License-Identifier: MIT
#include "platform/shared_page.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "platform/errno_error.hpp"

namespace apusched::platform {
namespace {

// Linux 6.3; older ones answer EINVAL.
constexpr unsigned kNoExecSeal = 0x0008U;

int make_memfd(const char* name) {
  const int fd = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | kNoExecSeal);
  if (fd >= 0 || errno != EINVAL) return fd;
  return ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

tl::unexpected<core::Error> failed(const char* name) {
  return tl::unexpected(errno_error(errno, "make shared memory", name));
}

}  // namespace

core::Result<SharedPage::Made> SharedPage::make(const char* name, std::size_t size, Writer writer) {
  UniqueFd fd(make_memfd(name));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return failed(name);
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return failed(name);
  SharedPage page(data, size);
  // Our own writable mapping is older than the seal and stays.
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL |
                    (writer == Writer::us_alone ? F_SEAL_FUTURE_WRITE : 0);
  if (::fcntl(fd.get(), F_ADD_SEALS, seals) != 0) return failed(name);
  return Made{std::move(page), std::move(fd)};
}

}  // namespace apusched::platform
