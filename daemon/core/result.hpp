// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace apusched::core {

/// What went wrong, coarse enough to decide on. `gone` is not a failure of ours: the process,
/// thread, unit or device disappeared between looking and acting (ESRCH, ENOENT).
enum class ErrorCode {
  gone,
  denied,
  unsupported,
  contended,  ///< somebody else changed the value since we wrote it
  limit_reached,
  invalid_input,
  not_found,
  timed_out,
  failed,
};

/// An expected failure. `operation` and `target` name what was tried on what; `detail` is a
/// sentence for people: the cause and, where there is one, what to do about it.
struct Error {
  ErrorCode code = ErrorCode::failed;
  std::string operation;
  std::string target;
  std::string detail;

  bool operator==(const Error&) const = default;
};

template <typename T>
using Result = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string operation,
                                                std::string target, std::string detail) {
  return tl::unexpected<Error>(
      Error{code, std::move(operation), std::move(target), std::move(detail)});
}

/// "operation target: detail", the form in which every error reaches a log or a user.
[[nodiscard]] std::string to_sentence(const Error& error);
[[nodiscard]] std::string_view to_string(ErrorCode code);

}  // namespace apusched::core
