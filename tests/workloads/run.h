// SPDX-License-Identifier: MIT
#pragma once

#include "workloads/shape.h"

namespace apusched::workloads {

// A whole program: arguments, a line {"event": "ready"}, the load, a line {"event": "final"} at the
// end of --duration or on SIGTERM or SIGINT. Its exit status.
int run(int argc, char** argv, Shape shape);

}  // namespace apusched::workloads
