// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>

#include "ports/report.hpp"

namespace spdlog {
class logger;
}

namespace apusched::report {

/// Prints to the journal where stderr is the journal, else to stderr. The only place that logs.
class LogReport final : public ports::Report {
 public:
  /// `level` is one of trace, debug, info, warning, error; anything else means info.
  explicit LogReport(const std::string& level);
  ~LogReport() override;

  void registered(core::RegistrationId id, const core::ProcessKey& process,
                  std::string_view profile) override;
  void released(core::RegistrationId id, std::string_view why) override;
  void lever(core::RegistrationId id, const core::LeverStatus& status) override;
  void restored(const std::string& resource, std::string_view value) override;
  void degraded(std::string_view what, std::string_view reason) override;
  void recovered(std::string_view what) override;
  void warning(std::string_view text) override;
  void control(core::Pid pid, core::Latency what, const core::ControlEvent& event) override;
  void info(std::string_view text) override;
  void error(std::string_view text);

 private:
  std::shared_ptr<spdlog::logger> log_;
};

}  // namespace apusched::report
