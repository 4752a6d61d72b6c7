// SPDX-License-Identifier: MIT
// Times the daemon's calls beside an echo and, where asked for, gamemoded's, all on one
// connection and in turns. Prints one JSON object per repetition.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "bus_client.hpp"

namespace apusched::bench {
namespace {

struct Options {
  std::string bus;
  std::string profile = "bench";
  int nice = -10;
  std::uint32_t pid = 0;
  std::int32_t gamemode_pid = 0;  ///< 0: no gamemoded
  bool systemd = false;
  int count = 1000;
  int repetitions = 3;
};

class Threads {
 public:
  explicit Threads(std::int64_t pid) {
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task"))
      ids_.push_back(static_cast<id_t>(std::stoul(entry.path().filename())));
  }

  void expect_nice(int nice, const char* when) const {
    for (const auto id : ids_) {
      errno = 0;
      const int found = ::getpriority(PRIO_PROCESS, id);
      if (errno != 0 || found != nice)
        throw BrokenRun{std::string(when) + " returned, but thread " + std::to_string(id) +
                        " has nice " + std::to_string(found) + ", not " + std::to_string(nice)};
    }
  }

 private:
  std::vector<id_t> ids_;
};

class Calls {
 public:
  explicit Calls(const Options& options)
      : options_(options),
        client_(options.bus),
        threads_(options.pid),
        gamemode_threads_(options.gamemode_pid == 0 ? options.pid : options.gamemode_pid) {}

  /// One of each call. Before a timed call its service is at rest: what a call leaves to be done
  /// after its reply is waited for, outside of the time.
  Samples repetition(int count) {
    Samples samples;
    for (int i = 0; i < count; ++i) {
      daemon_calls(samples);
      if (options_.gamemode_pid != 0) gamemode_calls(samples);
    }
    return samples;
  }

 private:
  template <typename Call>
  void time(Samples& samples, const char* name, const char* service, Call call) {
    client_.ping(service);
    const auto begin = now_ns();
    call();
    samples.add(name, now_ns() - begin);
  }

  void echo(Samples& samples) {
    time(samples, "echo", kEcho, [this] { client_.echo(); });
  }

  void daemon_calls(Samples& samples) {
    echo(samples);
    time(samples, "list_none", kDaemon, [this] { client_.list_processes(); });
    echo(samples);
    std::string path;
    time(samples, "register", kDaemon,
         [&] { path = client_.register_pid(options_.pid, options_.profile); });
    threads_.expect_nice(options_.nice, "RegisterPid");
    client_.ping(kDaemon);
    client_.settle(path);
    echo(samples);
    time(samples, "get", kDaemon, [this] { client_.get_state(); });
    echo(samples);
    time(samples, "list_changed", kDaemon, [this] { client_.list_processes(); });
    echo(samples);
    time(samples, "list_one", kDaemon, [this] { client_.list_processes(); });
    time(samples, "echo_list", kEcho, [this] { client_.echo_list(); });
    echo(samples);
    time(samples, "unregister", kDaemon, [&] { client_.unregister(path); });
    threads_.expect_nice(0, "Unregister");
    client_.ping(kDaemon);
    if (options_.systemd) wait_for_weights();
  }

  void gamemode_calls(Samples& samples) {
    echo(samples);
    time(samples, "gamemode_register", kGamemode,
         [this] { client_.gamemode_register(options_.gamemode_pid); });
    gamemode_threads_.expect_nice(options_.nice, "RegisterGame");
    echo(samples);
    time(samples, "gamemode_unregister", kGamemode,
         [this] { client_.gamemode_unregister(options_.gamemode_pid); });
    gamemode_threads_.expect_nice(0, "UnregisterGame");
  }

  /// And for the daemon to have heard that they are back.
  void wait_for_weights() {
    const auto end = now_ns() + 10'000'000'000;
    for (const char* name : {"CPUWeight", "IOWeight"})
      while (client_.unit_weight(name) != UINT64_MAX)
        if (now_ns() > end) throw BrokenRun{std::string(name) + " was not put back within 10 s"};
    constexpr int kRounds = 5;  // its read-back goes through the same mock, which answers in turn
    for (int i = 0; i < kRounds; ++i) static_cast<void>(client_.unit_weight("IOWeight"));
    client_.ping(kDaemon);
  }

  const Options& options_;
  BusClient client_;
  Threads threads_;
  Threads gamemode_threads_;
};

int run(const Options& options) {
  Calls calls(options);
  constexpr int kWarmUp = 20;
  static_cast<void>(calls.repetition(kWarmUp));
  for (int i = 0; i < options.repetitions; ++i)
    std::printf("%s\n", calls.repetition(options.count).to_json().c_str());
  return 0;
}

}  // namespace
}  // namespace apusched::bench

int main(int argc, char** argv) {
  apusched::bench::Options options;
  CLI::App app("Times D-Bus calls of the daemon; bench_dbus.py starts everything it needs.");
  app.add_option("--bus", options.bus, "Address of the bus")->required();
  app.add_option("--pid", options.pid, "Process to register")->required();
  app.add_option("--profile", options.profile, "Profile to register it with");
  app.add_option("--nice", options.nice, "Nice value that profile (and gamemoded) applies");
  app.add_option("--gamemode-pid", options.gamemode_pid, "Process to register with gamemoded");
  app.add_flag("--systemd", options.systemd, "Wait for the unit's weight to come and go");
  app.add_option("--count", options.count, "Calls of each kind per repetition");
  app.add_option("--repetitions", options.repetitions, "How often");
  CLI11_PARSE(app, argc, argv);
  try {
    return apusched::bench::run(options);
  } catch (const apusched::bench::BrokenRun& broken) {
    std::fprintf(stderr, "broken run: %s\n", broken.sentence.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "broken run: %s\n", error.what());
  }
  return 1;
}
