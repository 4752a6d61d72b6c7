// SPDX-License-Identifier: MIT
// What is in a session directory, and what clients say to its supervisor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace apusched::softapu {

inline constexpr const char* kSessionVariable = "SOFTAPU_SESSION";
// Of the first GPU; the others have their number behind these names (file_of).
inline constexpr const char* kStateFile = "state";  // SharedFile, mapped by every client
inline constexpr const char* kControlSocket =
    "control";                                         // SOCK_SEQPACKET, served by the supervisor
inline constexpr const char* kHiddenFiles = "hidden";  // what a fault took out of the tree
inline constexpr const char* kReadyFile = "ready";     // exists while the session is served
inline constexpr const char* kLockFile = "lock";       // flock of the supervisor
inline constexpr const char* kLevelFileName = "power_dpm_force_performance_level";

[[nodiscard]] inline std::string file_of(const char* name, std::size_t gpu) {
  return gpu == 0 ? name : name + std::to_string(gpu);
}

// A client's connection is its life line: the supervisor reaps it when the connection or the
// process ends. Where nothing else is said a request is answered, after the /sys tree shows it.
enum class RequestKind : std::uint32_t {
  opened,  // the client has its slot: make proc/<pid>
  queue_created,
  queue_destroyed,
  memory_changed,  // no answer
  works,           // no answer; DeviceState::readings_rest is over
  closed,
  faults_changed,  // of softapu-ctl, no client: show in the tree what FaultState says
};

[[nodiscard]] inline bool is_answered(RequestKind kind) {
  return kind != RequestKind::memory_changed && kind != RequestKind::works;
}

struct Request {
  RequestKind kind{};
  std::uint32_t client = 0;  // index in DeviceState::clients
  std::uint32_t queue = 0;   // id within the client
  std::uint32_t ring_bytes = 0;
};

struct Reply {
  std::int32_t error = 0;  // errno
};

}  // namespace apusched::softapu
