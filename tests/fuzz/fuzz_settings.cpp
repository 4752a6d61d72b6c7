// SPDX-License-Identifier: MIT
// Any text: no crash, errors with sane places; what is accepted survives being written and read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "settings/settings.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace apusched::settings;
  const auto config = parse({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!config) {
    if (config.error().empty()) std::abort();
    for (const auto& error : config.error())
      if (error.line < 1 || error.column < 1 || to_string(error).empty()) std::abort();
    return 0;
  }
  const auto again = parse(to_yaml(*config), "again");
  if (!again || !(*again == *config)) std::abort();
  return 0;
}
