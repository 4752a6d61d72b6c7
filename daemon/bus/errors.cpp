// SPDX-License-Identifier: MIT
#include "bus/errors.hpp"

#include "dbus/sdbus_version.hpp"

namespace apusched::bus {
namespace {

sdbus_version::ErrorName full_name(const char* name) {
  return sdbus_version::ErrorName(std::string("org.apusched1.Error.") + name);
}

const char* name_of(const core::Error& error) {
  switch (error.code) {
    case core::ErrorCode::gone:
      return "NoSuchProcess";
    case core::ErrorCode::denied:
      return "NotAllowed";
    case core::ErrorCode::unsupported:
      return "NotAvailable";
    case core::ErrorCode::contended:
      return "AlreadyRegistered";
    case core::ErrorCode::limit_reached:
      return "LimitReached";
    case core::ErrorCode::invalid_input:
      return "InvalidArgument";
    case core::ErrorCode::not_found:
      return error.operation == "use profile" ? "UnknownProfile" : "NotRegistered";
    case core::ErrorCode::timed_out:
    case core::ErrorCode::failed:
      return "Failed";
  }
  return "Failed";
}

}  // namespace

sdbus::Error to_dbus(const core::Error& error) {
  return {full_name(name_of(error)), core::to_sentence(error)};
}

sdbus::Error invalid_argument(const std::string& sentence) {
  return {full_name("InvalidArgument"), sentence};
}

sdbus::Error access_denied(const std::string& sentence) {
  return {full_name("AccessDenied"), sentence};
}

}  // namespace apusched::bus
