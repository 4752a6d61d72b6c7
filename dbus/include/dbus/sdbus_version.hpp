// SPDX-License-Identifier: MIT
// What differs between sdbus-c++ 1 (Debian 12) and 2 (Debian 13 and later), for everything here
// that speaks D-Bus. Version 2 has types of their own for names, hands errors over by value, and
// describes an object's interface as one table.
#pragma once

#include <sdbus-c++/sdbus-c++.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#if __has_include(<sdbus-c++/VTableItems.h>)
#define APUSCHED_SDBUS_2 1
#else
#define APUSCHED_SDBUS_2 0
#endif

namespace apusched::sdbus_version {

#if APUSCHED_SDBUS_2
using ServiceName = sdbus::ServiceName;
using ErrorName = sdbus::Error::Name;
using PropertyName = sdbus::PropertyName;
/// First argument of a reply's callback: nothing where the call succeeded.
using CallError = std::optional<sdbus::Error>;
#else
using ServiceName = std::string;
using ErrorName = std::string;
using PropertyName = std::string;
using CallError = const sdbus::Error*;
#endif

inline std::vector<PropertyName> property_names(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

/// Who sent the message that `object` deals with now; empty outside of a handler.
inline std::string current_sender(const sdbus::IObject& object) {
  const auto message = object.getCurrentlyProcessedMessage();
#if APUSCHED_SDBUS_2
  return message.isValid() ? message.getSender() : std::string();
#else
  return message == nullptr ? std::string() : message->getSender();
#endif
}

/// What a connection waits for: poll() events on `fd`, until `deadline` (CLOCK_MONOTONIC, in
/// microseconds) at the latest. Version 2 has another descriptor, which wakes a loop up when a
/// thread of its own has changed that; here all is done by the thread of the loop.
struct Wait {
  int fd = -1;
  std::uint32_t events = 0;
  std::optional<std::uint64_t> deadline;
};

inline Wait wait_of(const sdbus::IConnection& connection) {
  const auto data = connection.getEventLoopPollData();
  Wait wait{data.fd, static_cast<std::uint32_t>(data.events), std::nullopt};
#if APUSCHED_SDBUS_2
  if (data.timeout != std::chrono::microseconds::max())
    wait.deadline = static_cast<std::uint64_t>(data.timeout.count());
#else
  if (data.timeout_usec != std::numeric_limits<std::uint64_t>::max())
    wait.deadline = data.timeout_usec;
#endif
  return wait;
}

/// One message at most.
inline void process_one(sdbus::IConnection& connection) {
#if APUSCHED_SDBUS_2
  connection.processPendingEvent();
#else
  connection.processPendingRequest();
#endif
}

/// Exports all methods of an interface: pairs of a name and what carries it out.
template <typename... Method>
void export_methods(sdbus::IObject& object, const char* interface, Method... methods) {
#if APUSCHED_SDBUS_2
  object.addVTable(sdbus::registerMethod(methods.first).implementedAs(std::move(methods.second))...)
      .forInterface(interface);
#else
  (object.registerMethod(methods.first)
       .onInterface(interface)
       .implementedAs(std::move(methods.second)),
   ...);
  object.finishRegistration();
#endif
}

}  // namespace apusched::sdbus_version
