// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "core/result.hpp"

namespace apusched::platform {

/// The meaning of an errno value for us; ESRCH and ENOENT are "gone", not failures.
[[nodiscard]] core::ErrorCode errno_code(int error);
/// An Error whose detail is the errno's text. `error` is the value of errno, saved by the caller.
[[nodiscard]] core::Error errno_error(int error, std::string operation, std::string target);

}  // namespace apusched::platform
