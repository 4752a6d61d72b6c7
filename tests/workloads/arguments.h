// SPDX-License-Identifier: MIT
#pragma once

#include "workloads/shape.h"

namespace apusched::workloads {

// The command line over the defaults of `shape`. What is wrong, or --help, ends the program with a
// sentence that names the argument; status 2 if it was wrong.
[[nodiscard]] Options read_arguments(int argc, char** argv, Shape shape);

}  // namespace apusched::workloads
