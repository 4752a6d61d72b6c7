// SPDX-License-Identifier: MIT
#include "platform/systemd_units.hpp"

#include <systemd/sd-bus.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <limits>

#include "dbus/sdbus_version.hpp"
#include "platform/errno_error.hpp"

namespace apusched::platform {
namespace {

using namespace std::chrono_literals;
constexpr auto kTimeout = 10s;
const sdbus_version::ServiceName service_name{"org.freedesktop.systemd1"};
const sdbus::ObjectPath manager_path{"/org/freedesktop/systemd1"};
constexpr const char* kUnitPrefix = "/org/freedesktop/systemd1/unit";
/// systemd's "[not set]" of a weight.
constexpr auto kNotSet = std::numeric_limits<std::uint64_t>::max();

core::Error bus_error(const sdbus::Error& error, std::string operation, std::string target) {
  const auto& name = error.getName();
  core::Error result{core::ErrorCode::failed, std::move(operation), std::move(target),
                     error.getMessage()};
  const auto ends = [&](std::string_view tail) { return name.ends_with(tail); };
  if (ends(".NoSuchUnit") || ends(".NoUnitForPID") || ends(".NoSuchProcess") ||
      ends(".UnknownObject"))
    result.code = core::ErrorCode::gone;
  else if (ends(".AccessDenied") || ends(".InteractiveAuthorizationRequired"))
    result.code = core::ErrorCode::denied;
  else if (ends(".ServiceUnknown") || ends(".NameHasNoOwner") || ends(".UnknownMethod"))
    result = {core::ErrorCode::unsupported, result.operation, result.target,
              "systemd is not on this bus"};
  else if (ends(".NoReply") || ends(".Timeout"))
    result.code = core::ErrorCode::timed_out;
  return result;
}

std::string decode_unit(const std::string& path) {
  char* name = nullptr;
  if (sd_bus_path_decode(path.c_str(), kUnitPrefix, &name) <= 0) return {};
  std::string result(name);
  std::free(name);  // NOLINT(cppcoreguidelines-no-malloc): sd-bus allocates with malloc
  return result;
}

std::string encode_unit(const std::string& unit) {
  char* path = nullptr;
  if (sd_bus_path_encode(kUnitPrefix, unit.c_str(), &path) < 0) return {};
  std::string result(path);
  std::free(path);  // NOLINT(cppcoreguidelines-no-malloc): sd-bus allocates with malloc
  return result;
}

std::string_view interface_of(std::string_view unit) {
  if (unit.ends_with(".service")) return "org.freedesktop.systemd1.Service";
  if (unit.ends_with(".scope")) return "org.freedesktop.systemd1.Scope";
  if (unit.ends_with(".slice")) return "org.freedesktop.systemd1.Slice";
  return {};
}

const char* property_of(core::LeverKind kind) {
  return kind == core::LeverKind::cpu_weight ? "CPUWeight" : "IOWeight";
}

core::Weight weight_from(std::uint64_t value) {
  if (value > core::Weight::kMax) return {};
  return core::Weight::make(static_cast<std::int64_t>(value)).value_or(core::Weight());
}

/// Starts a call; a call that cannot even be sent (bus gone) is answered like a failed one.
template <typename Start, typename Done>
void start_call(std::size_t& pending, const Done& done, const char* operation,
                const std::string& target, Start start) {
  ++pending;
  try {
    start();
  } catch (const sdbus::Error& error) {
    --pending;
    done(tl::unexpected(bus_error(error, operation, target)));
  }
}

}  // namespace

SystemdUnits::SystemdUnits(sdbus::IConnection& connection, std::string control_dir)
    : connection_(connection),
      control_dir_(std::move(control_dir)),
      manager_(sdbus::createProxy(connection, service_name, manager_path)) {}

SystemdUnits::~SystemdUnits() = default;

sdbus::IProxy& SystemdUnits::proxy_of(const std::string& path) {
  constexpr std::size_t kKeep = 256;
  if (proxies_.size() >= kKeep && pending_ == 0) proxies_.clear();
  auto& proxy = proxies_[path];
  if (!proxy) proxy = sdbus::createProxy(connection_, service_name, sdbus::ObjectPath(path));
  return *proxy;
}

void SystemdUnits::find(core::Pid pid, FactsCallback done) {
  start_call(pending_, done, "find the unit of process", core::to_string(pid), [&] {
    manager_->callMethodAsync("GetUnitByPID")
        .onInterface("org.freedesktop.systemd1.Manager")
        .withTimeout(kTimeout)
        .withArguments(static_cast<std::uint32_t>(pid.value()))
        .uponReplyInvoke(
            [this, pid, done](const sdbus_version::CallError error, const sdbus::ObjectPath& path) {
              --pending_;
              if (error)
                return done(tl::unexpected(
                    bus_error(*error, "find the unit of process", core::to_string(pid))));
              // A process that stands in a slice itself has no unit of its own to be favoured.
              if (const auto unit = decode_unit(path); unit.ends_with(".slice"))
                return done(core::fail(core::ErrorCode::unsupported, "set weights of", unit,
                                       "only services and scopes get weights"));
              read_object(path, done);
            });
  });
}

void SystemdUnits::read(const std::string& unit, FactsCallback done) {
  read_object(encode_unit(unit), done);
}

void SystemdUnits::read_object(const std::string& path, const FactsCallback& done) {
  ports::UnitFacts facts;
  facts.name = decode_unit(path);
  if (facts.name.empty())
    return done(core::fail(core::ErrorCode::failed, "read unit", path, "malformed object path"));
  facts.of_user_manager = facts.name.starts_with("user@") && facts.name.ends_with(".service");
  if (facts.of_user_manager) return done(facts);
  if (interface_of(facts.name).empty())
    return done(core::fail(core::ErrorCode::unsupported, "set weights of", facts.name,
                           "only services and scopes get weights"));
  read_weight(path, core::LeverKind::cpu_weight,
              [this, path, facts, done](const core::Result<core::Weight>& cpu) mutable {
                if (!cpu) return done(tl::unexpected(cpu.error()));
                facts.cpu_weight = *cpu;
                read_weight(path, core::LeverKind::io_weight,
                            [facts, done](const core::Result<core::Weight>& io) mutable {
                              if (!io) return done(tl::unexpected(io.error()));
                              facts.io_weight = *io;
                              done(facts);
                            });
              });
}

void SystemdUnits::read_weight(const std::string& path, core::LeverKind kind,
                               std::function<void(core::Result<core::Weight>)> done) {
  const auto unit = decode_unit(path);
  start_call(pending_, done, "read weight of", unit, [&] {
    proxy_of(path)
        .callMethodAsync("Get")
        .onInterface("org.freedesktop.DBus.Properties")
        .withTimeout(kTimeout)
        .withArguments(std::string(interface_of(unit)), std::string(property_of(kind)))
        .uponReplyInvoke(
            [this, unit, done](const sdbus_version::CallError error, const sdbus::Variant& value) {
              --pending_;
              if (error) return done(tl::unexpected(bus_error(*error, "read weight of", unit)));
              if (!value.containsValueOfType<std::uint64_t>())
                return done(core::fail(core::ErrorCode::failed, "read weight of", unit,
                                       "systemd answered with another type"));
              done(weight_from(value.get<std::uint64_t>()));
            });
  });
}

void SystemdUnits::set_weight(const std::string& unit, core::LeverKind kind, core::Weight weight,
                              DoneCallback done) {
  const std::uint64_t value = weight.is_set() ? weight.effective() : kNotSet;
  const std::vector<sdbus::Struct<std::string, sdbus::Variant>> properties{
      sdbus::make_struct(std::string(property_of(kind)), sdbus::Variant(value))};
  constexpr bool kRuntime = true;
  start_call(pending_, done, "set weight of", unit, [&] {
    manager_->callMethodAsync("SetUnitProperties")
        .onInterface("org.freedesktop.systemd1.Manager")
        .withTimeout(kTimeout)
        .withArguments(unit, kRuntime, properties)
        .uponReplyInvoke([this, unit, done](const sdbus_version::CallError error) {
          --pending_;
          if (error) return done(tl::unexpected(bus_error(*error, "set weight of", unit)));
          done({});
        });
  });
}

std::string SystemdUnits::drop_in_path(const std::string& unit, core::LeverKind kind) const {
  return control_dir_ + "/" + unit + ".d/50-" + property_of(kind) + ".conf";
}

bool SystemdUnits::has_drop_in(const std::string& unit, core::LeverKind kind) {
  return unit.find('/') == std::string::npos &&
         ::access(drop_in_path(unit, kind).c_str(), F_OK) == 0;
}

core::Result<void> SystemdUnits::remove_drop_in(const std::string& unit, core::LeverKind kind) {
  if (unit.find('/') != std::string::npos)
    return core::fail(core::ErrorCode::invalid_input, "remove drop-in of", unit, "bad unit name");
  const auto path = drop_in_path(unit, kind);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    return tl::unexpected(errno_error(errno, "remove", path));
  // The directory goes with its last file; other drop-ins keep it.
  static_cast<void>(::rmdir((control_dir_ + "/" + unit + ".d").c_str()));
  return {};
}

}  // namespace apusched::platform
