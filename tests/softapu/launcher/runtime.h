// SPDX-License-Identifier: MIT
// The ROCr that programs on the software APU will load here.
#pragma once

#include <optional>
#include <string>

#include "sysfs/model_file.h"

namespace apusched::softapu {

// Why the model is of no use with the ROCr of this machine, as a sentence; nothing where ROCr knows
// the model's ISA and nodes, or where there is no ROCr (then only /sys is of interest).
[[nodiscard]] std::optional<std::string> refusal(const MachineModel& model);

}  // namespace apusched::softapu
