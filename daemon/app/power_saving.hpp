// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>

#include "ports/event_loop.hpp"
#include "ports/power_source.hpp"

namespace apusched::app {

/// Whether the machine is to save power, as it was a moment ago. Event-loop thread.
class PowerSaving {
 public:
  /// `source` null: the machine never saves power. All borrowed.
  PowerSaving(ports::PowerSource* source, ports::EventLoop& loop) : source_(source), loop_(loop) {}

  [[nodiscard]] bool now() {
    if (source_ == nullptr) return false;
    const auto time = loop_.now();
    if (read_.time_since_epoch().count() != 0 && time - read_ < kInterval) return saving_;
    read_ = time;
    return saving_ = source_->saving();
  }

 private:
  /// Files of ACPI: some take milliseconds to read.
  static constexpr std::chrono::seconds kInterval{5};

  ports::PowerSource* source_;
  ports::EventLoop& loop_;
  std::chrono::steady_clock::time_point read_{};
  bool saving_ = false;
};

}  // namespace apusched::app
