// SPDX-License-Identifier: MIT
#include "bus/connection.hpp"

#include <systemd/sd-event.h>

#include <cstdint>
#include <limits>

#include "dbus/sdbus_version.hpp"

namespace apusched::bus {

core::Result<std::unique_ptr<sdbus::IConnection>> open_bus(const std::string& which) {
  try {
    if (which == "system") return sdbus::createSystemBusConnection();
    if (which == "session") return sdbus::createSessionBusConnection();
    return sdbus::createSessionBusConnectionWithAddress(which);
  } catch (const sdbus::Error& error) {
    return core::fail(core::ErrorCode::failed, "connect to bus", which, error.getMessage());
  }
}

core::Result<void> own_name(sdbus::IConnection& connection, const std::string& name) {
  try {
    connection.requestName(sdbus_version::ServiceName(name));
    return {};
  } catch (const sdbus::Error& error) {
    const bool taken = error.getName().find("FileExists") != std::string::npos ||
                       error.getMessage().find("File exists") != std::string::npos;
    return core::fail(
        taken ? core::ErrorCode::contended : core::ErrorCode::denied, "own bus name", name,
        taken ? "another apuschedd owns it; stop that one first"
              : error.getMessage() + "; is the bus policy file org.apusched1.conf installed?");
  }
}

LoopAttachment::LoopAttachment(sdbus::IConnection& connection, sd_event* loop,
                               std::function<void()> before_message, std::function<void()> on_lost)
    : connection_(connection),
      before_message_(std::move(before_message)),
      on_lost_(std::move(on_lost)) {
  const auto wanted = sdbus_version::wait_of(connection_);
  const auto on_io = [](sd_event_source*, int, std::uint32_t, void* self) -> int {
    static_cast<LoopAttachment*>(self)->process();
    return 0;
  };
  const auto on_time = [](sd_event_source*, std::uint64_t, void* self) -> int {
    static_cast<LoopAttachment*>(self)->process();
    return 0;
  };
  sd_event_add_io(loop, &io_, wanted.fd, wanted.events, on_io, this);
  sd_event_add_time(loop, &timer_, CLOCK_MONOTONIC, std::numeric_limits<std::uint64_t>::max(), 1,
                    on_time, this);
  sd_event_source_set_enabled(timer_, SD_EVENT_OFF);
  sd_event_source_set_prepare(io_, prepare);
}

LoopAttachment::~LoopAttachment() {
  sd_event_source_disable_unref(io_);
  sd_event_source_disable_unref(timer_);
}

int LoopAttachment::prepare(sd_event_source*, void* data) {
  auto& self = *static_cast<LoopAttachment*>(data);
  try {
    self.update();
  } catch (const sdbus::Error&) {
    self.lose();
  }
  return 0;
}

/// Before each poll. A timeout of 0 means that messages are queued already, which no poll on the
/// descriptor would tell.
void LoopAttachment::update() {
  const auto wanted = sdbus_version::wait_of(connection_);
  sd_event_source_set_io_events(io_, wanted.events);
  if (wanted.deadline) {
    sd_event_source_set_time(timer_, *wanted.deadline);
    sd_event_source_set_enabled(timer_, SD_EVENT_ONESHOT);
  } else {
    sd_event_source_set_enabled(timer_, SD_EVENT_OFF);
  }
}

/// One message a round: what a handler deferred (at higher priority) comes before the next one.
void LoopAttachment::process() {
  before_message_();
  try {
    sdbus_version::process_one(connection_);
  } catch (const sdbus::Error&) {
    lose();
  }
}

void LoopAttachment::lose() {
  sd_event_source_set_enabled(io_, SD_EVENT_OFF);
  sd_event_source_set_enabled(timer_, SD_EVENT_OFF);
  sd_event_source_set_prepare(io_, nullptr);
  if (const auto lost = std::exchange(on_lost_, nullptr)) lost();
}

}  // namespace apusched::bus
