// SPDX-License-Identifier: MIT
#include "core/result.hpp"

namespace apusched::core {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::gone:
      return "gone";
    case ErrorCode::denied:
      return "denied";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::contended:
      return "contended";
    case ErrorCode::limit_reached:
      return "limit reached";
    case ErrorCode::invalid_input:
      return "invalid input";
    case ErrorCode::not_found:
      return "not found";
    case ErrorCode::timed_out:
      return "timed out";
    case ErrorCode::failed:
      return "failed";
  }
  return "failed";
}

std::string to_sentence(const Error& error) {
  std::string text = error.operation;
  if (!error.target.empty()) text += " " + error.target;
  if (!error.detail.empty()) text += ": " + error.detail;
  return text;
}

}  // namespace apusched::core
