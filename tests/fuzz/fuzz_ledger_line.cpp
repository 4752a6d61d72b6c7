// SPDX-License-Identifier: MIT
// Any line: no crash; a line that is understood says the same after being written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "platform/ledger_text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace apusched::platform;
  const auto line = parse_line({reinterpret_cast<const char*>(data), size});
  if (!line) return 0;
  const auto text = format_line(*line);
  const auto again = parse_line(text);
  if (!again || again->index() != line->index() || format_line(*again) != text) std::abort();
  return 0;
}
