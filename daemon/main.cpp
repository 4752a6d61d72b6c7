// SPDX-License-Identifier: MIT
// apuschedd: arguments, wiring, run.
#include "options.hpp"
#include "run.hpp"

int main(int argc, char** argv) {
  const auto options = apusched::parse_options(argc, argv);
  if (!options) return options.error();
  return apusched::run_daemon(*options);
}
