// SPDX-License-Identifier: MIT
// This process as a client of a session: the shared device and the line to the supervisor.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "device/shared_device.h"
#include "session/layout.h"

namespace apusched::softapu {

class SessionClient {
 public:
  // Null with errno set. Waits at most two seconds for the supervisor.
  static std::unique_ptr<SessionClient> join(const char* directory, std::size_t gpu);
  // How many GPUs the session has.
  static std::size_t gpus(const char* directory);
  // Leaves: queues, kernels and memory of this client are gone from device and tree afterwards.
  ~SessionClient();
  SessionClient(const SessionClient&) = delete;
  SessionClient& operator=(const SessionClient&) = delete;

  [[nodiscard]] SharedDevice& device() { return *device_; }
  [[nodiscard]] ClientIndex index() const { return index_; }
  // 0, or an errno. Thread-safe.
  int tell(RequestKind kind, std::uint32_t queue = 0, std::uint32_t ring_bytes = 0);
  // In the child of a fork: the connection is the parent's.
  void abandon();

 private:
  SessionClient(std::unique_ptr<SharedDevice> device, int socket)
      : device_(std::move(device)), socket_(socket) {}

  std::unique_ptr<SharedDevice> device_;
  ClientIndex index_{};
  std::mutex mutex_;  // one request at a time on socket_
  int socket_;
};

}  // namespace apusched::softapu
