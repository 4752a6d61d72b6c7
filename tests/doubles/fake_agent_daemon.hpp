// SPDX-License-Identifier: MIT
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "agent/abi.hpp"

/// The daemon's end of the agent's socket, driven by a test.
namespace apusched::fake {

/// Waits for a condition; the test fails where it does not come.
template <class Condition>
bool eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return true;
}

struct PageSpec {
  std::size_t bytes;
  int seals = F_SEAL_SHRINK | F_SEAL_GROW;
};

inline int make_page(const PageSpec& spec) {
  const int fd = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_EQ(ftruncate(fd, static_cast<off_t>(spec.bytes)), 0);
  EXPECT_EQ(fcntl(fd, F_ADD_SEALS, spec.seals), 0);
  return fd;
}

/// One agent that has said hello.
class AgentPeer {
 public:
  explicit AgentPeer(int socket) : socket_(socket) {
    EXPECT_EQ(recv(socket_, &hello, sizeof hello, 0), static_cast<ssize_t>(sizeof hello));
    control_fd = make_page({sizeof(agent_abi::Control)});
    telemetry_fd = make_page({sizeof(agent_abi::Telemetry)});
    control = map<agent_abi::Control>(control_fd);
    telemetry_ = map<agent_abi::Telemetry>(telemetry_fd);
    control->magic = agent_abi::kMagic;
    control->version = agent_abi::kVersion;
    control->size = sizeof *control;
  }
  ~AgentPeer() {
    hang_up();
    munmap(control, sizeof *control);
    munmap(telemetry_, sizeof *telemetry_);
    close(control_fd);
    close(telemetry_fd);
  }
  AgentPeer(const AgentPeer&) = delete;
  AgentPeer& operator=(const AgentPeer&) = delete;

  void welcome() const { welcome_with(control_fd, telemetry_fd); }
  void welcome_with(int first, int second) const {
    const agent_abi::Welcome message{agent_abi::kMagic, agent_abi::kVersion, sizeof message, 0};
    send_message(&message, sizeof message, {first, second});
  }
  void refuse(agent_abi::Refusal why) const {
    const agent_abi::Welcome message{agent_abi::kMagic, agent_abi::kVersion, sizeof message,
                                     static_cast<std::uint32_t>(why)};
    send(socket_, &message, sizeof message, MSG_NOSIGNAL);
  }
  void send_bytes(const void* bytes, std::size_t size) const {
    send(socket_, bytes, size, MSG_NOSIGNAL);
  }
  void wake() const {
    const agent_abi::Wake message{agent_abi::kMagic, sequence()};
    send_bytes(&message, sizeof message);
  }

  /// Writes the control page as the protocol says, and wakes the agent.
  void set(const std::function<void(agent_abi::Control&)>& change) const {
    write(change);
    wake();
  }
  void write(const std::function<void(agent_abi::Control&)>& change) const {
    agent_abi::Control next = *control;
    change(next);
    __atomic_store_n(&control->sequence, next.sequence + 1, __ATOMIC_RELAXED);
    const std::uint32_t done = next.sequence + 2;
    next.sequence++;
    for (std::size_t i = 0; i < sizeof next / 4; i++) {
      std::uint32_t word = 0;
      std::memcpy(&word, reinterpret_cast<char*>(&next) + 4 * i, 4);
      __atomic_store_n(reinterpret_cast<std::uint32_t*>(control) + i, word, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&control->sequence, done, __ATOMIC_RELEASE);
  }
  void mask(std::uint32_t bits, std::uint32_t word) const {
    set([&](agent_abi::Control& page) {
      page.gpus[0].mask_bits = bits;
      page.gpus[0].mask[0] = word;
    });
  }

  [[nodiscard]] std::optional<agent_abi::Telemetry> telemetry() const {
    const auto before = __atomic_load_n(&telemetry_->sequence, __ATOMIC_ACQUIRE);
    if (before == 0 || before % 2 != 0) return std::nullopt;
    agent_abi::Telemetry copy;
    for (std::size_t i = 0; i < sizeof copy / 8; i++) {
      const std::uint64_t word =
          __atomic_load_n(reinterpret_cast<std::uint64_t*>(telemetry_) + i, __ATOMIC_ACQUIRE);
      std::memcpy(reinterpret_cast<char*>(&copy) + 8 * i, &word, 8);
    }
    if (__atomic_load_n(&telemetry_->sequence, __ATOMIC_RELAXED) != before) return std::nullopt;
    return copy;
  }
  /// What the agent reports once `condition` holds for it.
  agent_abi::Telemetry report(const std::function<bool(const agent_abi::Telemetry&)>& condition) {
    std::optional<agent_abi::Telemetry> seen;
    EXPECT_TRUE(eventually([&] {
      seen = telemetry();
      return seen && condition(*seen);
    }));
    return seen ? *seen : agent_abi::Telemetry{};
  }
  /// Once it has done what the control page says.
  agent_abi::Telemetry settled() {
    return report([&](const auto& t) { return t.control_sequence == sequence(); });
  }
  [[nodiscard]] std::uint32_t sequence() const {
    return __atomic_load_n(&control->sequence, __ATOMIC_RELAXED);
  }

  /// The agent has ended the connection.
  bool has_left() const {
    char byte = 0;
    return eventually([&] {
      const ssize_t got = recv(socket_, &byte, 1, MSG_DONTWAIT);
      return got == 0 || (got < 0 && errno == ECONNRESET);
    });
  }
  void hang_up() {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }

  agent_abi::Hello hello{};
  agent_abi::Control* control = nullptr;
  int control_fd = -1, telemetry_fd = -1;

 private:
  template <class Page>
  static Page* map(int fd) {
    void* memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    EXPECT_NE(memory, MAP_FAILED);
    return static_cast<Page*>(memory);
  }
  void send_message(const void* bytes, std::size_t size, std::array<int, 2> fds) const {
    alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof fds)] = {};
    iovec part{const_cast<void*>(bytes), size};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = ancillary;
    message.msg_controllen = sizeof ancillary;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fds);
    std::memcpy(CMSG_DATA(header), fds.data(), sizeof fds);
    EXPECT_EQ(sendmsg(socket_, &message, MSG_NOSIGNAL), static_cast<ssize_t>(size));
  }

  int socket_;
  agent_abi::Telemetry* telemetry_ = nullptr;
};

class FakeAgentDaemon {
 public:
  FakeAgentDaemon() {
    char name[] = "/tmp/apusched-agent-XXXXXX";
    directory_ = mkdtemp(name);
  }
  ~FakeAgentDaemon() {
    stop();
    rmdir(directory_.c_str());
  }
  FakeAgentDaemon(const FakeAgentDaemon&) = delete;
  FakeAgentDaemon& operator=(const FakeAgentDaemon&) = delete;

  [[nodiscard]] std::string path() const { return directory_ + "/agent.sock"; }
  [[nodiscard]] const std::string& directory() const { return directory_; }
  void listen() {
    listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path().c_str());
    ASSERT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(listener_, 8), 0);
  }
  /// The next agent that comes.
  std::unique_ptr<AgentPeer> accept() {
    pollfd file{listener_, POLLIN, 0};
    if (poll(&file, 1, 30'000) != 1) {
      ADD_FAILURE() << "no agent came";
      return nullptr;
    }
    return std::make_unique<AgentPeer>(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
  }
  [[nodiscard]] bool has_caller() const {
    pollfd file{listener_, POLLIN, 0};
    return poll(&file, 1, 0) == 1;
  }
  void stop() {
    if (listener_ >= 0) close(listener_);
    listener_ = -1;
    unlink(path().c_str());
  }

 private:
  std::string directory_;
  int listener_ = -1;
};

}  // namespace apusched::fake
