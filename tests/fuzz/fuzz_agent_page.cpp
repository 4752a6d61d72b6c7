// SPDX-License-Identifier: MIT
// What a hostile program can put into its greeting and, page after page, into its telemetry.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "platform/agent_page.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace apusched;
  const auto bytes = std::as_bytes(std::span(data, size));
  const core::ProcessKey process{*core::Pid::make(1), {1}};
  if (const auto facts = platform::parse_hello(bytes, process))
    if (facts->gpus.size() > agent_abi::kMaxGpus) std::abort();

  platform::ReportChecker checker(agent_abi::kMaxGpus);
  std::uint64_t submitted = 0;
  for (std::size_t at = 0; at < size; at += 256) {
    agent_abi::Telemetry page{};
    page.magic = agent_abi::kMagic;
    page.version = agent_abi::kVersion;
    page.size = sizeof page;
    // The first bytes of a page decide; whole pages would only be slower.
    auto* target =
        reinterpret_cast<std::uint8_t*>(&page) + offsetof(agent_abi::Telemetry, sequence);
    std::memcpy(target, data + at, std::min<std::size_t>(256, size - at));
    static_cast<void>(checker.check(page, 1000));
    if (!checker.report()) continue;
    if (checker.report()->submitted < submitted ||
        checker.report()->taken > checker.report()->submitted)
      std::abort();
    submitted = checker.report()->submitted;
  }
  return 0;
}
