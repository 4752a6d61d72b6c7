// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/lever.hpp"
#include "core/result.hpp"
#include "core/types.hpp"

namespace apusched::ports {

struct UnitFacts {
  std::string name;  ///< "llama.service"
  core::Weight cpu_weight;
  core::Weight io_weight;
  bool of_user_manager = false;  ///< below user@UID.service: the system manager cannot set it
};

/// systemd, the single writer of its cgroup tree. Answers arrive later on the event loop, or
/// never called after the object is gone.
class Units {
 public:
  virtual ~Units() = default;
  using FactsCallback = std::function<void(core::Result<UnitFacts>)>;
  using DoneCallback = std::function<void(core::Result<void>)>;
  /// The unit a process belongs to, with its weights.
  virtual void find(core::Pid pid, FactsCallback done) = 0;
  virtual void read(const std::string& unit, FactsCallback done) = 0;
  /// `kind` is cpu_weight or io_weight. Written as a runtime property.
  virtual void set_weight(const std::string& unit, core::LeverKind kind, core::Weight weight,
                          DoneCallback done) = 0;
  /// True where systemd already holds a runtime drop-in for this weight (then it is not ours).
  [[nodiscard]] virtual bool has_drop_in(const std::string& unit, core::LeverKind kind) = 0;
  /// Removes the runtime drop-in that set_weight left: it would mask a later edit of the unit.
  [[nodiscard]] virtual core::Result<void> remove_drop_in(const std::string& unit,
                                                          core::LeverKind kind) = 0;
};

}  // namespace apusched::ports
