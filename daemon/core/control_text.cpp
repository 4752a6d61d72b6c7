// SPDX-License-Identifier: MIT
#include "core/control.hpp"

namespace apusched::core {

std::string_view to_string(ControlState state) {
  switch (state) {
    case ControlState::idle:
      return "idle";
    case ControlState::observing:
      return "observing";
    case ControlState::meeting:
      return "meeting";
    case ControlState::violating:
      return "violating";
    case ControlState::saturated:
      return "saturated";
    case ControlState::failsafe:
      return "failsafe";
  }
  return "?";
}

std::string_view to_string(Latency what) {
  switch (what) {
    case Latency::cpu_wait:
      return "cpu_wait";
    case Latency::dispatch:
      return "dispatch";
  }
  return "?";
}

std::optional<Latency> parse_latency(std::string_view text) {
  for (const auto what : {Latency::cpu_wait, Latency::dispatch})
    if (text == to_string(what)) return what;
  return std::nullopt;
}

std::string_view to_string(ControlEvent::What what) {
  switch (what) {
    case ControlEvent::What::tried:
      return "tried";
    case ControlEvent::What::kept:
      return "kept";
    case ControlEvent::What::undone:
      return "undone";
    case ControlEvent::What::confirmed:
      return "confirmed";
    case ControlEvent::What::inconclusive:
      return "inconclusive";
    case ControlEvent::What::released:
      return "released";
    case ControlEvent::What::state:
      return "state";
  }
  return "?";
}

}  // namespace apusched::core
