// SPDX-License-Identifier: MIT
// The control page as the agent reads it: whatever the daemon writes, no mask is out of range, and
// none that enables nothing is ever to be set.
#include <cstring>

#include "agent/gate.hpp"
#include "agent/masks.hpp"
#include "agent/pages.hpp"
#include "agent/settings.hpp"

namespace {

using namespace apusched::agent;

void check(bool good) {
  if (!good) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  alignas(8) apusched::agent_abi::Control page{};
  page.magic = apusched::agent_abi::kMagic;
  page.version = apusched::agent_abi::kVersion;
  page.size = sizeof page;
  // What is longer than the page overwrites what every page begins with.
  auto* from = reinterpret_cast<char*>(&page) + (size > sizeof page - 12 ? 0 : 12);
  const std::size_t room = from == reinterpret_cast<char*>(&page) ? sizeof page : sizeof page - 12;
  std::memcpy(from, data, size < room ? size : room);
  const auto copy = read_control(&page);
  check(copy.has_value() == (page.sequence % 2 == 0));
  if (!copy) return 0;
  const auto settings = settings_from(*copy);
  if (!settings) return 0;
  for (const CuMask& mask : settings->masks) {
    check(mask.bits % 32 == 0 && mask.bits <= 1024);
    const Effective effective = effective_mask(mask, settings->masks[0], all_of(12), true);
    check(!effective.ours || !enables_none(effective.mask));
  }
  GatePolicy policy;
  const Nanoseconds now{1'000'000'000};
  check(policy.decide(now, settings->gate_closed_until).closed_until <= now + kMaxGate);
  return 0;
}
