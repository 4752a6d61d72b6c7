// SPDX-License-Identifier: MIT
#include "bus/callers.hpp"

#include <algorithm>
#include <chrono>

#include "dbus/sdbus_version.hpp"

namespace apusched::bus {
namespace {

using namespace std::chrono_literals;
constexpr std::size_t kRemembered = 256;

std::optional<Caller> caller_from(const std::map<std::string, sdbus::Variant>& facts) {
  const auto uid = facts.find("UnixUserID");
  if (uid == facts.end() || !uid->second.containsValueOfType<std::uint32_t>()) return std::nullopt;
  Caller caller{uid->second.get<std::uint32_t>(), {}};
  const auto gids = facts.find("UnixGroupIDs");
  if (gids != facts.end() && gids->second.containsValueOfType<std::vector<std::uint32_t>>())
    caller.gids = gids->second.get<std::vector<std::uint32_t>>();
  return caller;
}

}  // namespace

bool may_write(const Caller& caller, std::uint32_t own_uid, std::optional<std::uint32_t> group) {
  if (caller.uid == 0 || caller.uid == own_uid) return true;
  return group && std::ranges::find(caller.gids, *group) != caller.gids.end();
}

Callers::Callers(sdbus::IConnection& connection)
    : bus_(sdbus::createProxy(connection, sdbus_version::ServiceName("org.freedesktop.DBus"),
                              sdbus::ObjectPath("/org/freedesktop/DBus"))) {}

Callers::~Callers() = default;

void Callers::identify(const std::string& sender, const Callback& done) {
  if (const auto found = known_.find(sender); found != known_.end()) return done(found->second);
  try {
    bus_->callMethodAsync("GetConnectionCredentials")
        .onInterface("org.freedesktop.DBus")
        .withTimeout(10s)
        .withArguments(sender)
        .uponReplyInvoke([this, sender, done](sdbus_version::CallError error,
                                              const std::map<std::string, sdbus::Variant>& facts) {
          const auto caller = error ? std::nullopt : caller_from(facts);
          if (caller) remember(sender, *caller);
          done(caller);
        });
  } catch (const sdbus::Error&) {
    done(std::nullopt);
  }
}

void Callers::remember(const std::string& sender, const Caller& caller) {
  if (known_.size() >= kRemembered) {
    known_.erase(order_.front());
    order_.pop_front();
  }
  if (known_.insert_or_assign(sender, caller).second) order_.push_back(sender);
}

}  // namespace apusched::bus
