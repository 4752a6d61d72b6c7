// SPDX-License-Identifier: MIT
#include "platform/errno_error.hpp"

#include <cerrno>
#include <system_error>

namespace apusched::platform {

core::ErrorCode errno_code(int error) {
  switch (error) {
    case ESRCH:
    case ENOENT:
    case ENODEV:
      return core::ErrorCode::gone;
    case EPERM:
    case EACCES:
    case EROFS:
      return core::ErrorCode::denied;
    case EOPNOTSUPP:
    case ENOSYS:
    case EINVAL:
      return core::ErrorCode::unsupported;
    case EMFILE:
    case ENFILE:
      return core::ErrorCode::limit_reached;
    case ETIMEDOUT:
    case EAGAIN:
      return core::ErrorCode::timed_out;
    default:
      return core::ErrorCode::failed;
  }
}

core::Error errno_error(int error, std::string operation, std::string target) {
  return {errno_code(error), std::move(operation), std::move(target),
          std::generic_category().message(error)};
}

}  // namespace apusched::platform
