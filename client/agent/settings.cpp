// SPDX-License-Identifier: MIT
#include "agent/settings.hpp"

#include <charconv>
#include <cstdlib>
#include <ctime>
#include <string_view>

namespace apusched::agent {
namespace {

// Longer names do not fit sockaddr_un.
constexpr std::size_t kLongestSocketPath = 107;
constexpr std::uint64_t kLargestLimitMib = std::uint64_t{1} << 40;

std::uint64_t number(const char* name, std::uint64_t largest, std::uint64_t otherwise) {
  const char* text = secure_getenv(name);
  if (text == nullptr) return otherwise;
  const std::string_view view = text;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc{} || end != view.data() + view.size() || value > largest) return otherwise;
  return value;
}

}  // namespace

std::optional<Settings> settings_from(const agent_abi::Control& page) noexcept {
  if (page.magic != agent_abi::kMagic || page.version != agent_abi::kVersion ||
      page.size != sizeof page || page.serial > 1 || page.sample_hz > agent_abi::kMaxSampleHz ||
      page.priority > static_cast<std::uint32_t>(agent_abi::Priority::high))
    return std::nullopt;
  Settings settings;
  settings.sample_hz = page.sample_hz;
  settings.priority = static_cast<agent_abi::Priority>(page.priority);
  settings.serial = page.serial == 1;
  settings.queue_limit = page.queue_limit;
  settings.memory_limit_bytes = page.memory_limit_bytes;
  // What is later than the gate allows is cut there; here only so that it fits the type.
  settings.gate_closed_until =
      Nanoseconds{static_cast<std::int64_t>(page.gate_closed_until_ns & INT64_MAX)};
  for (std::size_t i = 0; i < agent_abi::kMaxGpus; i++) {
    const agent_abi::GpuControl& gpu = page.gpus[i];
    if (gpu.mask_bits % 32 != 0 || gpu.mask_bits > 32 * agent_abi::kMaxMaskWords)
      return std::nullopt;
    settings.masks[i] = mask_from(gpu.mask_bits, gpu.mask);
  }
  return settings;
}

Environment read_environment() {
  Environment environment;
  const char* socket = secure_getenv(agent_abi::kSocketVariable);
  environment.socket = agent_abi::kDefaultSocket;
  if (socket != nullptr && socket[0] == '/' &&
      std::string_view(socket).size() <= kLongestSocketPath)
    environment.socket = socket;
  environment.first_queue_wait =
      std::chrono::milliseconds{number(agent_abi::kWaitVariable, 1000, 100)};
  environment.settings.serial = number(agent_abi::kSerialVariable, 1, 0) == 1;
  environment.settings.queue_limit =
      static_cast<std::uint32_t>(number(agent_abi::kQueueLimitVariable, UINT32_MAX, 0));
  environment.settings.memory_limit_bytes =
      number(agent_abi::kMemoryLimitVariable, kLargestLimitMib, 0) << 20;
  return environment;
}

Nanoseconds monotonic_now() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::chrono::seconds{now.tv_sec} + Nanoseconds{now.tv_nsec};
}

}  // namespace apusched::agent
