// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "agent/abi.hpp"
#include "agent/descriptor.hpp"
#include "agent/pages.hpp"

namespace apusched::agent {

/// The connection to the daemon, and the pages that came over it. Never blocks. Owned by the
/// agent's thread, but for leave_to_parent().
class Link {
 public:
  enum class Event {
    nothing,
    absent,    ///< nobody listens at the path
    busy,      ///< somebody does, but takes nobody now
    greeted,   ///< connected, the answer is awaited
    welcomed,  ///< the pages are mapped
    woken,     ///< the control page has changed
    refused,
    ended,  ///< by the daemon, or because what it sent is not the protocol
  };

  [[nodiscard]] Event connect(const std::string& path, const agent_abi::Hello& hello) noexcept;
  /// When descriptor() is readable. `nothing`: call again when it is readable the next time.
  [[nodiscard]] Event receive() noexcept;
  void close() noexcept;

  [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }
  [[nodiscard]] bool is_open() const noexcept { return socket_.is_open(); }
  [[nodiscard]] bool is_welcome() const noexcept { return control_.is_mapped(); }
  [[nodiscard]] const void* control() const noexcept { return control_.memory(); }
  [[nodiscard]] void* telemetry() const noexcept { return telemetry_.memory(); }

  /// In a child of fork(): the connection is the parent's.
  void leave_to_parent() noexcept { socket_.reset(); }

 private:
  Event take_welcome() noexcept;
  Event take_wake() noexcept;

  Descriptor socket_;
  SharedPage control_, telemetry_;
};

}  // namespace apusched::agent
