// SPDX-License-Identifier: MIT
// The KFD topology (class/kfd/kfd/topology) of a model.
#pragma once

#include "sysfs/tree.h"

namespace apusched::softapu {

void make_topology(const TreePaths& paths, const MachineModel& model);

}  // namespace apusched::softapu
