// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/result.hpp"

struct sd_event;
struct sd_event_source;
namespace sdbus {
class IConnection;
}

namespace apusched::bus {

/// "system", "session", or the address of a bus.
[[nodiscard]] core::Result<std::unique_ptr<sdbus::IConnection>> open_bus(const std::string& which);

/// `contended` where somebody else owns the name.
[[nodiscard]] core::Result<void> own_name(sdbus::IConnection& connection, const std::string& name);

/// Drives a connection from an sd-event loop for as long as it lives. `before_message` is called
/// before each message is dealt with, `on_lost` once when the bus went away.
class LoopAttachment {
 public:
  LoopAttachment(sdbus::IConnection& connection, sd_event* loop,
                 std::function<void()> before_message, std::function<void()> on_lost);
  ~LoopAttachment();
  LoopAttachment(const LoopAttachment&) = delete;
  LoopAttachment& operator=(const LoopAttachment&) = delete;

 private:
  static int prepare(sd_event_source* source, void* self);
  void process();
  /// What the connection waits for now.
  void update();
  void lose();

  sdbus::IConnection& connection_;
  std::function<void()> before_message_;
  std::function<void()> on_lost_;
  sd_event_source* io_ = nullptr;
  sd_event_source* timer_ = nullptr;
};

}  // namespace apusched::bus
