// SPDX-License-Identifier: MIT
#pragma once

#include <sdbus-c++/Error.h>

#include "core/result.hpp"

namespace apusched::bus {

/// The one table from core errors to D-Bus error names (org.apusched1.Error.*).
[[nodiscard]] sdbus::Error to_dbus(const core::Error& error);
[[nodiscard]] sdbus::Error invalid_argument(const std::string& sentence);
[[nodiscard]] sdbus::Error access_denied(const std::string& sentence);

}  // namespace apusched::bus
