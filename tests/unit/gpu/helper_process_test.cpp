// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <map>

#include "platform/gpu_helper_process.hpp"

namespace apusched::platform {
namespace {

/// Knows which descriptors were closed while they were watched. Where somebody else holds a copy,
/// as a child does that is being forked, epoll goes on watching such a one.
class StrictLoop final : public ports::EventLoop {
 public:
  struct Watch final : ports::Subscription {
    Watch(StrictLoop& of, int descriptor) : loop(of), fd(descriptor) {}
    ~Watch() override {
      if (::fcntl(fd, F_GETFD) < 0) loop.closed_too_early++;
      loop.readable.erase(fd);
    }
    StrictLoop& loop;
    int fd;
  };

  std::unique_ptr<ports::Subscription> watch_readable(int fd, Callback callback) override {
    readable[fd] = std::move(callback);
    return std::make_unique<Watch>(*this, fd);
  }
  std::unique_ptr<ports::Subscription> after(std::chrono::microseconds, Callback) override {
    return std::make_unique<ports::Subscription>();
  }
  void defer(Callback) override {}
  std::unique_ptr<ports::Subscription> watch_child(int, std::function<void(int)>) override {
    return std::make_unique<ports::Subscription>();
  }
  std::chrono::steady_clock::time_point now() const override { return {}; }

  std::map<int, Callback> readable;
  int closed_too_early = 0;
};

/// A process that only waits for its end, as if it had reached exec.
core::Result<SpawnedHelper> start_a_sleeper(int& notes) {
  std::array<int, 2> socket{};
  std::array<int, 2> pipe{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socket.data()), 0);
  EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK), 0);
  ::close(pipe[1]);  // by exec
  const int pid = ::fork();
  if (pid == 0)
    for (;;) ::pause();
  ::close(socket[1]);
  notes = pipe[0];
  return SpawnedHelper{pid, UniqueFd(socket[0]), UniqueFd(pipe[0]), {}};
}

TEST(HelperProcess, watches_its_notes_no_longer_than_they_are_open) {
  StrictLoop loop;
  int notes = -1;
  int pid = 0;
  HelperProcessOptions options{{"", *core::PciAddress::parse("0000:04:00.0")}};
  options.start = [&](const HelperSpawn&) { return start_a_sleeper(notes); };
  {
    HelperProcess helper(loop, options);
    helper.set_mode(ports::ProbeMode::continuous, {});
    ASSERT_TRUE(loop.readable.contains(notes));
    pid = helper.pid().value_or(0);
    const auto at_the_end = loop.readable.at(notes);
    at_the_end();
    EXPECT_FALSE(loop.readable.contains(notes));
    EXPECT_LT(::fcntl(notes, F_GETFD), 0) << "it is closed";
  }
  EXPECT_EQ(loop.closed_too_early, 0);
  EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
}

}  // namespace
}  // namespace apusched::platform
