// SPDX-License-Identifier: MIT
#include <array>
#include <memory>
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

class Unreachable final : public DaemonClient {
 public:
  explicit Unreachable(Failure why) : why_(std::move(why)) {}
  Outcome<DaemonView> daemon() override { return tl::unexpected(why_); }
  Outcome<std::vector<ProcessView>> processes() override { return tl::unexpected(why_); }
  Outcome<std::vector<GpuView>> gpus(bool /*fresh*/) override { return tl::unexpected(why_); }
  Outcome<std::string> register_process(std::uint32_t /*pid*/, const std::string& /*profile*/,
                                        const RegisterOptions& /*options*/) override {
    return tl::unexpected(why_);
  }
  Outcome<std::vector<ExplainLine>> explain(std::uint32_t /*pid*/) override {
    return tl::unexpected(why_);
  }
  Outcome<std::vector<HistoryLine>> history(std::uint32_t /*count*/) override {
    return tl::unexpected(why_);
  }
  Outcome<std::map<std::string, std::string>> launch_environment(const std::string& /*profile*/,
                                                                 bool /*agent*/) override {
    return tl::unexpected(why_);
  }
  Outcome<AdmissionView> admission(const std::string& /*profile*/) override {
    return tl::unexpected(why_);
  }
  Outcome<void> unregister(const std::string& /*object_path*/) override {
    return tl::unexpected(why_);
  }

 private:
  Failure why_;
};

}  // namespace

std::unique_ptr<DaemonClient> unreachable(Failure why) {
  return std::make_unique<Unreachable>(std::move(why));
}

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
