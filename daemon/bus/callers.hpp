// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sdbus {
class IConnection;
class IProxy;
class Variant;
class Error;
}  // namespace sdbus

namespace apusched::bus {

struct Caller {
  std::uint32_t uid = 0;
  std::vector<std::uint32_t> gids;
};

/// Root, the daemon's own user, and members of the group may write.
[[nodiscard]] bool may_write(const Caller& caller, std::uint32_t own_uid,
                             std::optional<std::uint32_t> group);

/// Who sent a message, asked of the bus itself and remembered by unique name (the bus never
/// hands a unique name out twice). Asynchronous; event-loop thread.
class Callers {
 public:
  /// Nothing where the bus does not know the sender (any more).
  using Callback = std::function<void(const std::optional<Caller>&)>;
  explicit Callers(sdbus::IConnection& connection);
  ~Callers();

  void identify(const std::string& sender, const Callback& done);

 private:
  void remember(const std::string& sender, const Caller& caller);
  std::unique_ptr<sdbus::IProxy> bus_;
  std::map<std::string, Caller> known_;
  std::deque<std::string> order_;  ///< oldest first, bounds `known_`
};

}  // namespace apusched::bus
