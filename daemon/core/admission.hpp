// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <set>

#include "core/control.hpp"
#include "core/types.hpp"

namespace apusched::core {

/// Whether there is room for more background work: not while a process of a higher class misses its
/// target and nothing is left to try, nor right after. Pure.
class Admission {
 public:
  /// `quiet`: how long nobody may have been out of help before there is room again.
  explicit Admission(Moment quiet) : quiet_(quiet) {}

  /// A registration has come to, or is out of, the end of its ladder.
  void note(RegistrationId id, bool saturated, Moment now) {
    if (saturated)
      saturated_.insert(id);
    else if (saturated_.erase(id) > 0)
      left_ = now;
  }
  /// The one for whose sake there is no room; nothing: there is.
  [[nodiscard]] std::optional<RegistrationId> closed_for() const {
    return saturated_.empty() ? std::nullopt : std::optional(*saturated_.begin());
  }
  [[nodiscard]] bool open(Moment now) const {
    return saturated_.empty() && (!left_ || now - *left_ >= quiet_);
  }

 private:
  Moment quiet_;
  std::set<RegistrationId> saturated_;
  std::optional<Moment> left_;  ///< when the last one was out of it
};

}  // namespace apusched::core
