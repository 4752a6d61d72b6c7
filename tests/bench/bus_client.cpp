// SPDX-License-Identifier: MIT
#include "bus_client.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

namespace apusched::bench {
namespace {

constexpr const char* kManagerPath = "/org/apusched1";
constexpr const char* kManager = "org.apusched1.Manager";
constexpr std::int64_t kSettleNs = 10'000'000'000;

struct Unref {
  void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};
using Message = std::unique_ptr<sd_bus_message, Unref>;

void check(int code, const char* what) {
  if (code < 0) throw BrokenRun{std::string(what) + ": " + std::strerror(-code)};
}

template <typename... Arguments>
Message call(sd_bus* bus, const char* service, const char* path, const char* interface,
             const char* method, const char* types, Arguments... arguments) {
  sd_bus_error error{};
  sd_bus_message* reply = nullptr;
  const int code = sd_bus_call_method(bus, service, path, interface, method, &error, &reply, types,
                                      arguments...);
  if (code < 0) {
    const std::string text = error.message != nullptr ? error.message : std::strerror(-code);
    sd_bus_error_free(&error);
    throw BrokenRun{std::string(method) + ": " + text};
  }
  return Message(reply);
}

/// gamemoded answers 0, or -1 and -2 for its kinds of failure.
void check_gamemode(const Message& reply, const char* method) {
  std::int32_t code = -1;
  check(sd_bus_message_read(reply.get(), "i", &code), method);
  if (code != 0)
    throw BrokenRun{std::string("gamemoded: ") + method + " answered " + std::to_string(code)};
}

}  // namespace

BusClient::BusClient(const std::string& address) {
  check(sd_bus_new(&bus_), "create the client");
  check(sd_bus_set_address(bus_, address.c_str()), "set the address");
  check(sd_bus_set_bus_client(bus_, 1), "set up the client");
  check(sd_bus_start(bus_), "connect to the bus");
}

BusClient::~BusClient() {
  sd_bus_flush_close_unref(bus_);
}

void BusClient::echo() {
  call(bus_, kEcho, "/org/apusched/Bench", "org.apusched.Bench", "Echo", "s", "llm-interactive");
}

void BusClient::echo_list() {
  call(bus_, kEcho, "/org/apusched/Bench", "org.apusched.Bench", "List", "");
}

void BusClient::ping(const char* service) {
  call(bus_, service, "/", "org.freedesktop.DBus.Peer", "Ping", "");
}

std::string BusClient::register_pid(std::uint32_t pid, const std::string& profile) {
  const auto reply = call(bus_, kDaemon, kManagerPath, kManager, "RegisterPid", "usa{sv}", pid,
                          profile.c_str(), 0);
  const char* path = nullptr;
  check(sd_bus_message_read(reply.get(), "o", &path), "RegisterPid");
  return path;
}

void BusClient::unregister(const std::string& path) {
  call(bus_, kDaemon, kManagerPath, kManager, "Unregister", "o", path.c_str());
}

void BusClient::list_processes() {
  call(bus_, kDaemon, kManagerPath, kManager, "ListProcesses", "");
}

void BusClient::get_state() {
  call(bus_, kDaemon, kManagerPath, "org.freedesktop.DBus.Properties", "Get", "ss", kManager,
       "State");
}

bool BusClient::has_pending(const std::string& path) {
  const auto reply = call(bus_, kDaemon, path.c_str(), "org.freedesktop.DBus.Properties", "Get",
                          "ss", "org.apusched1.Process", "Applied");
  auto* message = reply.get();
  check(sd_bus_message_enter_container(message, 'v', "a{s(ssss)}"), "Applied");
  check(sd_bus_message_enter_container(message, 'a', "{s(ssss)}"), "Applied");
  const char* lever = nullptr;
  const char* outcome = nullptr;
  const char* rest[3] = {};
  bool pending = false;
  int more = 0;
  while ((more = sd_bus_message_read(message, "{s(ssss)}", &lever, &outcome, &rest[0], &rest[1],
                                     &rest[2])) > 0)
    pending |= std::string_view(outcome) == "pending";
  check(more, "Applied");
  return pending;
}

void BusClient::settle(const std::string& path) {
  const auto end = now_ns() + kSettleNs;
  while (has_pending(path))
    if (now_ns() > end) throw BrokenRun{path + " still has pending levers after 10 s"};
}

std::uint64_t BusClient::unit_weight(const char* name) {
  const auto reply =
      call(bus_, "org.freedesktop.systemd1", "/org/freedesktop/systemd1/unit/llama_2eservice",
           "org.freedesktop.DBus.Properties", "Get", "ss", "org.freedesktop.systemd1.Service",
           "CPUWeight");
  std::uint64_t value = 0;
  check(sd_bus_message_read(reply.get(), "v", "t", &value), name);
  return value;
}

void BusClient::gamemode_register(std::int32_t pid) {
  check_gamemode(
      call(bus_, kGamemode, "/com/feralinteractive/GameMode", kGamemode, "RegisterGame", "i", pid),
      "RegisterGame");
}

void BusClient::gamemode_unregister(std::int32_t pid) {
  check_gamemode(call(bus_, kGamemode, "/com/feralinteractive/GameMode", kGamemode,
                      "UnregisterGame", "i", pid),
                 "UnregisterGame");
}

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

void Samples::add(const std::string& name, std::int64_t nanoseconds) {
  samples_[name].push_back(nanoseconds);
}

std::string Samples::to_json() const {
  auto result = nlohmann::json::object();
  for (auto [name, values] : samples_) {
    std::ranges::sort(values);
    // Nearest rank: the smallest sample that at least this share of all does not exceed.
    const auto quantile = [&values](std::size_t percent) {
      return values[(values.size() * percent + 99) / 100 - 1];
    };
    result[name] = {{"n", values.size()},
                    {"p50_ns", quantile(50)},
                    {"p99_ns", quantile(99)},
                    {"max_ns", values.back()}};
  }
  return result.dump();
}

}  // namespace apusched::bench
