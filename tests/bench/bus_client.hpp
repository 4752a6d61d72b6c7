// SPDX-License-Identifier: MIT
#pragma once

#include <systemd/sd-bus.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace apusched::bench {

/// Thrown where a run is broken: a call failed or had no effect. Never for a slow one.
struct BrokenRun {
  std::string sentence;
};

/// One blocking connection with the calls that are measured. sd-bus itself, so that as little as
/// possible of what is measured is the client. Not thread-safe.
class BusClient {
 public:
  explicit BusClient(const std::string& address);
  ~BusClient();
  BusClient(const BusClient&) = delete;
  BusClient& operator=(const BusClient&) = delete;

  void echo();
  void echo_list();
  /// Answered by the service's connection itself, after everything it had queued before.
  void ping(const char* service);

  [[nodiscard]] std::string register_pid(std::uint32_t pid, const std::string& profile);
  void unregister(const std::string& path);
  void list_processes();
  void get_state();
  /// A lever of the process is neither in force nor refused yet.
  [[nodiscard]] bool has_pending(const std::string& path);
  /// Calls until `has_pending` is false; throws after 10 s.
  void settle(const std::string& path);
  /// The mocked systemd's CPUWeight or IOWeight; all ones while it is not set.
  [[nodiscard]] std::uint64_t unit_weight(const char* name);

  void gamemode_register(std::int32_t pid);
  void gamemode_unregister(std::int32_t pid);

 private:
  sd_bus* bus_ = nullptr;
};

inline constexpr const char* kDaemon = "org.apusched1";
inline constexpr const char* kEcho = "org.apusched.Bench";
inline constexpr const char* kGamemode = "com.feralinteractive.GameMode";

/// Monotonic, nanoseconds.
[[nodiscard]] std::int64_t now_ns();

/// Samples by name, in nanoseconds; one instance per repetition.
class Samples {
 public:
  void add(const std::string& name, std::int64_t nanoseconds);
  /// {"name": {"n": …, "p50_ns": …, "p99_ns": …, "max_ns": …}, …}
  [[nodiscard]] std::string to_json() const;

 private:
  std::map<std::string, std::vector<std::int64_t>> samples_;
};

}  // namespace apusched::bench
