// SPDX-License-Identifier: MIT
#pragma once

#include "core/control.hpp"
#include "core/types.hpp"

namespace apusched::ports {

/// Keeps every input of every controller and what it decided, so that a run can be replayed.
class ControlLog {
 public:
  virtual ~ControlLog() = default;
  virtual void began(core::RegistrationId id, core::Latency what,
                     const core::ControlSettings& settings) = 0;
  virtual void stepped(core::RegistrationId id, core::Latency what, const core::ControlInput& input,
                       const core::ControlOutput& output) = 0;
};

}  // namespace apusched::ports
