// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <string>

#include "core/lever.hpp"
#include "core/result.hpp"

namespace apusched::app {

/// What the kernel refused when it was last asked for: not asked again for a while, as it may be
/// allowed then. A value; its owner says what time it is.
class Refusal {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void set(const core::Error& error, Time now) {
    why_ = core::to_sentence(error);
    outcome_ = core::outcome_of(error);
    at_ = now;
  }
  void forget() { why_.clear(); }
  void forget_after(std::chrono::milliseconds time, Time now) {
    if (now - at_ >= time) forget();
  }
  /// A sentence; empty: nothing was refused lately.
  [[nodiscard]] const std::string& why() const { return why_; }
  [[nodiscard]] core::Outcome outcome() const { return outcome_; }

 private:
  std::string why_;
  core::Outcome outcome_ = core::Outcome::failed;
  Time at_{};
};

}  // namespace apusched::app
