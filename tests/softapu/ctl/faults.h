// SPDX-License-Identifier: MIT
// Puts faults into the device of a session and takes them away.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/shared_device.h"

namespace apusched::softapu {

// What is wrong with a command, as a sentence.
using Complaint = std::optional<std::string>;

class FaultControl {
 public:
  // Throws std::runtime_error: no session is served there, or it has no such GPU.
  FaultControl(std::string session, std::size_t gpu);

  // Each returns after every program of the session sees it. Numbers and words are checked.
  Complaint set(Fault fault, bool on);
  Complaint reset(bool hold);
  Complaint remove_device();
  Complaint slow_sysfs(std::uint32_t milliseconds);
  Complaint stop_queue(std::uint32_t pid, std::optional<std::uint32_t> id);
  Complaint vanish(const std::string& file);
  // As another tool does, through the file.
  Complaint write_level(const std::string& level);
  Complaint clear();
  [[nodiscard]] std::vector<std::string> list();
  // As the system calls the device: card0, renderD128.
  [[nodiscard]] std::string card() const;
  [[nodiscard]] std::string render_node() const;
  // Blocks until `fault` is cleared or SIGTERM or SIGINT arrives.
  void hold(Fault fault);

 private:
  Complaint tell();
  [[nodiscard]] std::string device_directory() const;

  std::string session_;
  std::size_t gpu_;
  std::unique_ptr<SharedDevice> device_;
};

}  // namespace apusched::softapu
