// SPDX-License-Identifier: MIT
// Times the death of a registered process → its session's autogroup nice restored, as a member of
// that session sees it. Prints one JSON object per repetition.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "bus_client.hpp"

namespace apusched::bench {
namespace {

struct Options {
  std::string bus;
  std::string profile = "bench-session";
  int nice = -10;
  int exits = 200;
  int repetitions = 3;
};

/// A process with a session (and so an autogroup) of its own. It starts further members of that
/// session on demand and outlives them.
class Session {
 public:
  Session() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
      throw BrokenRun{"socketpair failed"};
    leader_ = ::fork();
    if (leader_ < 0) throw BrokenRun{"fork failed"};
    if (leader_ == 0) {
      ::close(ends[0]);
      lead(ends[1]);
    }
    ::close(ends[1]);
    channel_ = ends[0];
    if (receive() != leader_) throw BrokenRun{"the session leader did not start"};
    const auto path = "/proc/" + std::to_string(leader_) + "/autogroup";
    autogroup_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (autogroup_ < 0) throw BrokenRun{"no " + path + ": the kernel has no autogroups"};
  }
  ~Session() {
    ::kill(leader_, SIGKILL);
    ::close(autogroup_);
    ::close(channel_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] pid_t start_member() const {
    const char request = 's';
    if (::write(channel_, &request, 1) != 1) throw BrokenRun{"the session leader is gone"};
    return receive();
  }

  /// "/autogroup-N nice V"
  [[nodiscard]] int nice() const {
    std::array<char, 64> text{};
    const auto size = ::pread(autogroup_, text.data(), text.size() - 1, 0);
    const auto* value = size > 0 ? std::strstr(text.data(), "nice ") : nullptr;
    if (value == nullptr) throw BrokenRun{"the session's autogroup cannot be read"};
    return std::atoi(value + 5);
  }

 private:
  [[nodiscard]] pid_t receive() const {
    pid_t pid = -1;
    if (::read(channel_, &pid, sizeof pid) != sizeof pid)
      throw BrokenRun{"the session leader is gone"};
    return pid;
  }

  [[noreturn]] static void lead(int channel) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGCHLD, SIG_IGN);  // members are reaped at once
    ::setsid();
    pid_t pid = ::getpid();
    char request = 0;
    while (::write(channel, &pid, sizeof pid) == sizeof pid && ::read(channel, &request, 1) == 1) {
      pid = ::fork();
      if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) ::pause();
      }
    }
    ::_exit(0);
  }

  pid_t leader_ = -1;
  int channel_ = -1;
  int autogroup_ = -1;
};

/// Busy-waits, so that the watcher's own wake-up is no part of what is timed.
std::int64_t wait_for(const Session& session, int nice, const char* what) {
  constexpr std::int64_t kDeadlineNs = 10'000'000'000;
  const auto end = now_ns() + kDeadlineNs;
  for (;;) {
    const int found = session.nice();
    const auto now = now_ns();
    if (found == nice) return now;
    if (now > end)
      throw BrokenRun{std::string(what) + ": the autogroup still has nice " +
                      std::to_string(found)};
    ::sched_yield();
  }
}

Samples repetition(const Options& options, BusClient& client, const Session& session) {
  Samples samples;
  for (int i = 0; i < options.exits; ++i) {
    const auto victim = session.start_member();
    static_cast<void>(client.register_pid(static_cast<std::uint32_t>(victim), options.profile));
    wait_for(session, options.nice, "after RegisterPid");
    client.ping(kDaemon);
    const auto begin = now_ns();
    ::kill(victim, SIGKILL);
    samples.add("exit_restored", wait_for(session, 0, "after the exit") - begin);
  }
  return samples;
}

int run(const Options& options) {
  BusClient client(options.bus);
  const Session session;
  if (session.nice() != 0) throw BrokenRun{"a new session's autogroup has a nice value already"};
  for (int i = 0; i < options.repetitions; ++i)
    std::printf("%s\n", repetition(options, client, session).to_json().c_str());
  return 0;
}

}  // namespace
}  // namespace apusched::bench

int main(int argc, char** argv) {
  apusched::bench::Options options;
  CLI::App app("Times exit to restored; bench_exit.py starts everything it needs.");
  app.add_option("--bus", options.bus, "Address of the bus")->required();
  app.add_option("--profile", options.profile, "Profile with an autogroup nice");
  app.add_option("--nice", options.nice, "The autogroup nice that profile applies");
  app.add_option("--exits", options.exits, "Processes to register and kill per repetition");
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
