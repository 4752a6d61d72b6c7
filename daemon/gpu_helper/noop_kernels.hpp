// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace apusched::gpu_helper {

/// The ELF code object of the no-op kernel ("noop.kd") for an ISA such as "gfx1035"; empty where
/// the build had none.
[[nodiscard]] std::span<const std::byte> noop_code_object(std::string_view isa);

}  // namespace apusched::gpu_helper
