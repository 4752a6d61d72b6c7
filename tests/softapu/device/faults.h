// SPDX-License-Identifier: MIT
// Faults that softapu-ctl puts into the device. Part of the state that all processes share, so that
// each of them fails as it would with a real GPU in that condition. What follows from each fault,
// with sources: ../FIDELITY.md.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace apusched::softapu {

enum class Fault : std::uint32_t {
  hang,           // no queue of the device takes or retires anything
  resetting,      // a reset that does not end: no new clients, EPERM from sysfs
  suspended,      // EPERM from sysfs
  stopped_queue,  // those in FaultState::stopped take and retire nothing
  slow_sysfs,     // every access to an attribute of the driver takes slow_ms
  vanished_file,  // those in FaultState::vanished are not there
  no_memory,      // ENOMEM from what needs memory of the GPU
  gone,           // no device
  rsmi_mutex,     // a process holds rocm-smi's mutex
};
inline constexpr std::size_t kFaults = 9;
// As softapu-ctl and softapu-stat call them, in the order of the enumeration.
inline constexpr std::array<const char*, kFaults> kFaultNames = {
    "hang",   "reset",     "suspend", "stop-queue", "slow-sysfs",
    "vanish", "no-memory", "gone",    "rsmi-mutex"};

struct StoppedQueue {
  std::uint32_t pid = 0;  // 0: free
  std::uint32_t id = 0;
};

// Owner: whoever holds the lock of the device; the atomics may be read without.
struct FaultState {
  std::atomic<std::uint32_t> active{0};   // one bit for each Fault
  std::atomic<std::uint32_t> changed{0};  // futex, another value after every change
  std::atomic<std::uint32_t> losses{0};   // how often all clients lost what they had
  std::atomic<std::uint32_t> slow_ms{0};
  std::array<StoppedQueue, 8> stopped{};
  std::array<std::array<char, 96>, 8> vanished{};  // below the PCI device's directory; "": free

  [[nodiscard]] static std::uint32_t bit(Fault fault) {
    return 1U << static_cast<std::uint32_t>(fault);
  }
  [[nodiscard]] bool has(Fault fault) const { return (active.load() & bit(fault)) != 0; }
  // Cheap: could any queue be halted?
  [[nodiscard]] bool may_halt() const {
    return (active.load(std::memory_order_relaxed) &
            (bit(Fault::hang) | bit(Fault::resetting) | bit(Fault::gone) |
             bit(Fault::stopped_queue))) != 0;
  }
};

}  // namespace apusched::softapu
