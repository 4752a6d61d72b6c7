// SPDX-License-Identifier: MIT
#include "platform/pm_qos_latency.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>

#include "core/bounded.hpp"
#include "platform/errno_error.hpp"
#include "platform/small_file.hpp"

namespace apusched::platform {
namespace {

constexpr std::size_t kLongestIdleText = 64;
/// linux include/linux/cpuidle.h, CPUIDLE_STATE_MAX.
constexpr int kMostIdleStates = 10;

std::optional<std::string> idle_text(const std::string& path) {
  auto text = read_small_file(path, kLongestIdleText);
  if (!text) return std::nullopt;
  auto line = text->substr(0, text->find('\n'));
  const auto plain = [](char c) { return c > ' ' && c <= '~'; };
  return !line.empty() && std::ranges::all_of(line, plain) ? std::optional(line) : std::nullopt;
}

std::optional<std::int64_t> idle_number(const std::string& path) {
  const auto text = idle_text(path);
  return text ? core::parse_integer(*text) : std::nullopt;
}

}  // namespace

core::Result<void> PmQosLatency::limit(core::IdleLimit limit) {
  if (!request_) request_.reset(::open(device_.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (!request_) return tl::unexpected(errno_error(errno, "open", device_));
  auto written = write(limit);
  if (!written) request_.reset();
  return written;
}

/// Four bytes are a number, any other length is text (linux kernel/power/qos.c,
/// cpu_latency_qos_write). Reading answers what is in force: the least that anybody asks for.
core::Result<void> PmQosLatency::write(core::IdleLimit limit) {
  const auto wanted = static_cast<std::int32_t>(limit.value());
  const auto wrote = ::pwrite(request_.get(), &wanted, sizeof wanted, 0);
  if (wrote < 0) return tl::unexpected(errno_error(errno, "write", device_));
  std::int32_t in_force = -1;
  const auto got = ::pread(request_.get(), &in_force, sizeof in_force, 0);
  if (got < 0) return tl::unexpected(errno_error(errno, "read", device_));
  if (wrote != sizeof wanted || got != sizeof in_force || in_force < 0 || in_force > wanted)
    return core::fail(core::ErrorCode::failed, "write", device_,
                      "reads back " + std::to_string(in_force) + " µs");
  return {};
}

core::Result<ports::IdleState> PmQosLatency::deepest() {
  const auto states = root_ + "/devices/system/cpu/cpu0/cpuidle";
  std::optional<ports::IdleState> deepest;
  for (int index = 0; index < kMostIdleStates; ++index) {
    const auto state = states + "/state" + std::to_string(index);
    const auto exit = idle_number(state + "/latency");
    if (!exit) break;
    if (idle_number(state + "/disable").value_or(0) != 0) continue;
    const std::chrono::microseconds time(std::clamp<std::int64_t>(*exit, 0, INT32_MAX));
    if (!deepest || time > deepest->exit)
      deepest = ports::IdleState{
          idle_text(state + "/name").value_or("state" + std::to_string(index)), time};
  }
  if (!deepest)
    return core::fail(core::ErrorCode::unsupported, "read", states,
                      "the kernel has no idle states to choose from");
  return *deepest;
}

}  // namespace apusched::platform
