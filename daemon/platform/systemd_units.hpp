// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "ports/units.hpp"

namespace sdbus {
class IConnection;
class IProxy;
}  // namespace sdbus

namespace apusched::platform {

/// Units through org.freedesktop.systemd1 on the given bus. Asynchronous: the loop goes on.
class SystemdUnits final : public ports::Units {
 public:
  /// `connection` is borrowed and must outlive the object. `control_dir` is where systemd keeps
  /// runtime drop-ins, "/run/systemd/system.control" but for tests.
  SystemdUnits(sdbus::IConnection& connection, std::string control_dir);
  ~SystemdUnits() override;

  void find(core::Pid pid, FactsCallback done) override;
  void read(const std::string& unit, FactsCallback done) override;
  void set_weight(const std::string& unit, core::LeverKind kind, core::Weight weight,
                  DoneCallback done) override;
  bool has_drop_in(const std::string& unit, core::LeverKind kind) override;
  core::Result<void> remove_drop_in(const std::string& unit, core::LeverKind kind) override;

 private:
  sdbus::IProxy& proxy_of(const std::string& path);
  void read_weight(const std::string& path, core::LeverKind kind,
                   std::function<void(core::Result<core::Weight>)> done);
  void read_object(const std::string& path, const FactsCallback& done);
  [[nodiscard]] std::string drop_in_path(const std::string& unit, core::LeverKind kind) const;

  sdbus::IConnection& connection_;
  std::string control_dir_;
  std::unique_ptr<sdbus::IProxy> manager_;
  /// By unit object path; a proxy must outlive its pending calls, whose callbacks end with it.
  std::map<std::string, std::unique_ptr<sdbus::IProxy>> proxies_;
  std::size_t pending_ = 0;
};

}  // namespace apusched::platform
