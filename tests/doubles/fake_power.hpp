// SPDX-License-Identifier: MIT
#pragma once

#include "ports/power_source.hpp"

namespace apusched::doubles {

struct FakePower final : ports::PowerSource {
  [[nodiscard]] bool saving() override { return saves; }
  bool saves = false;
};

}  // namespace apusched::doubles
