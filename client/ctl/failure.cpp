// SPDX-License-Identifier: MIT
#include <array>
#include <string_view>

#include "ctl/daemon_client.hpp"
#include "ctl/text.hpp"

namespace apusched::ctl {
namespace {

constexpr std::string_view kOurs = "org.apusched1.Error.";

bool means_no_daemon(std::string_view name) {
  constexpr std::array kNames{
      std::string_view("org.freedesktop.DBus.Error.ServiceUnknown"),
      std::string_view("org.freedesktop.DBus.Error.NameHasNoOwner"),
  };
  for (const auto known : kNames)
    if (name == known) return true;
  return name.starts_with("org.freedesktop.DBus.Error.Spawn.");
}

bool means_lost_daemon(std::string_view name) {
  return name == "org.freedesktop.DBus.Error.NoReply" ||
         name == "org.freedesktop.DBus.Error.Timeout" ||
         name == "org.freedesktop.DBus.Error.Disconnected" || name == "System.Error.ETIMEDOUT" ||
         name == "System.Error.ECONNRESET";
}

ExitCode code_of(std::string_view kind) {
  if (kind == "AccessDenied") return ExitCode::denied;
  if (kind == "NoSuchProcess" || kind == "NotRegistered") return ExitCode::not_found;
  return ExitCode::refused;
}

}  // namespace

Failure failure_of(const std::string& error_name, const std::string& message) {
  const std::string_view name = error_name;
  const std::string said = printable(message);
  if (means_no_daemon(name))
    return {ExitCode::unreachable,
            "apuschedd is not running; start it with: systemctl start apuschedd"};
  if (means_lost_daemon(name))
    return {ExitCode::unreachable, "apuschedd does not answer; see: systemctl status apuschedd" +
                                       (said.empty() ? "" : " (" + said + ")")};
  if (name.starts_with(kOurs))
    return {code_of(name.substr(kOurs.size())), said.empty() ? printable(error_name) : said};
  if (name == "org.freedesktop.DBus.Error.AccessDenied")
    return {ExitCode::denied,
            "access denied by the bus: only root and members of the group apusched may do this"};
  return {ExitCode::refused, printable(error_name) + ": " + said};
}

}  // namespace apusched::ctl
