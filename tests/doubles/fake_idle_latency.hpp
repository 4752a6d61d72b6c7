// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "ports/idle_latency.hpp"

namespace apusched::doubles {

struct FakeIdleLatency final : ports::IdleLatency {
  core::Result<void> limit(core::IdleLimit limit) override {
    ++asked;
    if (error) return tl::unexpected(*error);
    in_force = limit.value();
    return {};
  }
  void release() override { in_force.reset(); }
  core::Result<ports::IdleState> deepest() override { return state; }

  std::optional<std::uint32_t> in_force;
  std::optional<core::Error> error;
  core::Result<ports::IdleState> state = ports::IdleState{"C3", std::chrono::microseconds(350)};
  int asked = 0;
};

}  // namespace apusched::doubles
