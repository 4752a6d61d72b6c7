// SPDX-License-Identifier: MIT
// A program with an agent that reports what a test tells it to, and says what it sees of the levers
// that act on the whole of a process: the limit on CPU latency, and the timer slack of its threads.
//
//   agent_program SOCKET DEVICE
//
// SOCKET is where agents connect, DEVICE what the daemon has open while it limits CPU latency. A
// line on standard input is how long packets wait from now on, in microseconds: while nothing is
// held, while only the latency is limited, while only the slack is held, and with both. An empty
// line: it dispatches nothing. A line on standard output is what it sees, as JSON, when that has
// changed and before anything is reported that follows from it:
//   {"limit": 20, "slacks": {"4711": 50000}}
// with null where DEVICE is not held or has not four bytes. It outlives its daemon and goes on with
// the next. Ends with its standard input.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <latch>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "agent/abi.hpp"

namespace apusched::fake {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kRound = 4ms;  ///< none of the daemon's ticks finds nothing new
/// Of the threads, in ns: the usual one, a strict one and a lax one.
constexpr std::array<unsigned long, 3> kSlacks{50000, 7, 123456};
/// control.timer_slack_ns of the default configuration.
constexpr long kWishedSlack = 1000;

struct Seen {
  std::optional<std::int32_t> limit;
  std::map<int, long> slacks;
  bool operator==(const Seen&) const = default;
};

class Connection {
 public:
  explicit Connection(const std::string& path) : socket_(socket(AF_UNIX, SOCK_SEQPACKET, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return;
    ucred peer{};
    socklen_t size = sizeof peer;
    getsockopt(socket_, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    daemon_ = peer.pid;
    greet();
    receive_pages();
  }
  ~Connection() {
    close(socket_);
    if (control_ != nullptr) munmap(const_cast<agent_abi::Control*>(control_), sizeof *control_);
    if (page_ != nullptr) munmap(page_, sizeof *page_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] bool is_up() const { return page_ != nullptr; }
  [[nodiscard]] int daemon() const { return daemon_; }
  [[nodiscard]] bool has_ended() const {
    std::array<char, 64> wake{};
    const auto got = recv(socket_, wake.data(), wake.size(), MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
  }
  /// A round's worth of looks, and of dispatches that waited so long; nothing: none.
  void report(std::optional<std::chrono::microseconds> wait) {
    auto next = *page_;
    next.control_sequence = __atomic_load_n(&control_->sequence, __ATOMIC_ACQUIRE) & ~1U;
    next.queue_count = 1;
    next.samples += 10;
    if (wait) {
      next.busy_samples += 9;
      next.submitted += 100;
      next.taken += 100;
      next.waits_ns[next.next_wait] =
          static_cast<std::uint64_t>(std::chrono::nanoseconds(*wait).count());
      next.next_wait = (next.next_wait + 1) % agent_abi::kWaits;
      ++next.wait_count;
    }
    const auto sequence = page_->sequence;
    __atomic_store_n(&page_->sequence, sequence + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    next.sequence = sequence + 1;
    std::memcpy(page_, &next, sizeof next);
    __atomic_store_n(&page_->sequence, sequence + 2, __ATOMIC_RELEASE);
  }

 private:
  void greet() const {
    agent_abi::Hello hello{};
    hello.magic = agent_abi::kMagic;
    hello.version = agent_abi::kVersion;
    hello.size = sizeof hello;
    hello.gpu_count = 1;
    hello.gpus[0] = {0, 4U << 8U, 12, "gfx1035"};
    send(socket_, &hello, sizeof hello, MSG_NOSIGNAL);
  }
  void receive_pages() {
    agent_abi::Welcome welcome{};
    iovec part{&welcome, sizeof welcome};
    std::array<int, 2> fds{-1, -1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fds)> room{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = room.data();
    message.msg_controllen = room.size();
    if (recvmsg(socket_, &message, 0) <= 0) return;
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header == nullptr) return;
    std::memcpy(fds.data(), CMSG_DATA(header), sizeof fds);
    control_ = map<const agent_abi::Control>(fds[0], PROT_READ);
    page_ = map<agent_abi::Telemetry>(fds[1], PROT_READ | PROT_WRITE);
    page_->magic = agent_abi::kMagic;
    page_->version = agent_abi::kVersion;
    page_->size = sizeof *page_;
  }
  template <typename Page>
  static Page* map(int fd, int protection) {
    void* memory = mmap(nullptr, sizeof(Page), protection, MAP_SHARED, fd, 0);
    close(fd);
    return static_cast<Page*>(memory);
  }

  int socket_;
  int daemon_ = 0;
  const agent_abi::Control* control_ = nullptr;
  agent_abi::Telemetry* page_ = nullptr;
};

/// Nothing where the daemon does not hold it.
std::optional<std::int32_t> limit_held(int daemon, const std::string& device) {
  bool is_open = false;
  std::error_code error;
  fs::directory_iterator entry("/proc/" + std::to_string(daemon) + "/fd", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code closed;
    is_open |= fs::read_symlink(entry->path(), closed) == device;
  }
  std::int32_t limit = 0;
  std::ifstream file(device, std::ios::binary);
  file.read(reinterpret_cast<char*>(&limit), sizeof limit);
  if (!is_open || file.gcount() != sizeof limit) return std::nullopt;
  return limit;
}

std::map<int, long> slacks() {
  std::map<int, long> found;
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    const auto tid = task.path().filename().string();
    std::ifstream file("/proc/" + tid + "/timerslack_ns");
    file >> found[std::stoi(tid)];
  }
  return found;
}

void tell(const Seen& seen) {
  std::ostringstream line;
  line << "{\"limit\": " << (seen.limit ? std::to_string(*seen.limit) : "null")
       << ", \"slacks\": {";
  const char* comma = "";
  for (const auto& [tid, slack] : seen.slacks)
    line << std::exchange(comma, ", ") << '"' << tid << "\": " << slack;
  std::cout << line.str() << "}}" << std::endl;
}

/// While nothing, only the limit, only the slack, or both are held.
using Waits = std::array<std::chrono::microseconds, 4>;

std::optional<std::chrono::microseconds> wait_under(const std::optional<Waits>& waits,
                                                    const Seen& seen) {
  if (!waits) return std::nullopt;
  const bool slack = std::ranges::all_of(
      seen.slacks, [](const auto& thread) { return thread.second == kWishedSlack; });
  return waits->at((seen.limit ? 1U : 0U) + (slack ? 2U : 0U));
}

class Program {
 public:
  Program(std::string path, std::string device)
      : path_(std::move(path)), device_(std::move(device)) {}
  void run() {
    while (is_wanted_) {
      Connection daemon(path_);
      if (!daemon.is_up()) listen();
      while (is_wanted_ && daemon.is_up() && !daemon.has_ended()) {
        look(daemon.daemon());
        daemon.report(wait_under(waits_, *seen_));
        listen();
      }
    }
  }

 private:
  void look(int daemon) {
    Seen now{limit_held(daemon, device_), slacks()};
    if (seen_ != now) tell(now);
    seen_ = std::move(now);
  }
  /// For a round, at most, to standard input.
  void listen() {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (poll(&input, 1, std::chrono::milliseconds(kRound).count()) <= 0) return;
    std::array<char, 256> part{};
    const auto got = read(STDIN_FILENO, part.data(), part.size());
    is_wanted_ = got > 0;
    if (got > 0) said_.append(part.data(), static_cast<std::size_t>(got));
    for (auto end = said_.find('\n'); end != std::string::npos; end = said_.find('\n')) {
      obey(said_.substr(0, end));
      said_.erase(0, end + 1);
    }
  }
  void obey(const std::string& line) {
    std::istringstream numbers(line);
    std::array<long, 4> us{};
    waits_.reset();
    if (!(numbers >> us[0] >> us[1] >> us[2] >> us[3])) return;
    using std::chrono::microseconds;
    waits_ =
        Waits{microseconds(us[0]), microseconds(us[1]), microseconds(us[2]), microseconds(us[3])};
  }

  std::string path_;
  std::string device_;
  bool is_wanted_ = true;
  std::string said_;  ///< not obeyed yet
  std::optional<Waits> waits_;
  std::optional<Seen> seen_;
};

/// One for each slack but the first, which is the caller's.
void start_threads() {
  std::latch ready(kSlacks.size() - 1);
  for (std::size_t i = 1; i < kSlacks.size(); ++i)
    std::thread([&ready, slack = kSlacks.at(i)] {
      prctl(PR_SET_TIMERSLACK, slack, 0, 0, 0);
      ready.count_down();
      for (;;) pause();
    }).detach();
  ready.wait();
  prctl(PR_SET_TIMERSLACK, kSlacks.front(), 0, 0, 0);
}

}  // namespace
}  // namespace apusched::fake

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: agent_program SOCKET DEVICE\n");
    return 2;
  }
  apusched::fake::start_threads();
  apusched::fake::Program(argv[1], argv[2]).run();
}
