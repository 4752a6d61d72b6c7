// SPDX-License-Identifier: MIT
// The KFD topology (class/kfd/kfd/topology) of a model.
#pragma once

#include <filesystem>
#include <vector>

#include "sysfs/tree.h"

namespace apusched::softapu {

// class/kfd and its topology: node 0 of the CPUs, then one for each GPU.
void make_topology(const std::filesystem::path& sys, const std::vector<MachineModel>& gpus);

}  // namespace apusched::softapu
