// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include "core/control.hpp"
#include "core/lever.hpp"
#include "core/types.hpp"

namespace apusched::ports {

/// Says what happened; how it is printed is the implementation's business.
class Report {
 public:
  virtual ~Report() = default;
  virtual void registered(core::RegistrationId id, const core::ProcessKey& process,
                          std::string_view profile) = 0;
  virtual void released(core::RegistrationId id, std::string_view why) = 0;
  virtual void lever(core::RegistrationId id, const core::LeverStatus& status) = 0;
  virtual void restored(const std::string& resource, std::string_view value) = 0;
  virtual void degraded(std::string_view what, std::string_view reason) = 0;
  virtual void recovered(std::string_view what) = 0;
  virtual void control(core::Pid pid, core::Latency what, const core::ControlEvent& event) = 0;
  /// A failure the daemon goes on after; ends with what it does instead.
  virtual void warning(std::string_view text) = 0;
  virtual void info(std::string_view text) = 0;
};

}  // namespace apusched::ports
