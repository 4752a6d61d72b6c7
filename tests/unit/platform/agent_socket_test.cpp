// SPDX-License-Identifier: MIT
#include "platform/agent_socket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "doubles/fake_ports.hpp"
#include "platform/procfs_processes.hpp"
#include "platform/sd_event_loop.hpp"

namespace apusched::platform {
namespace {

using namespace std::chrono_literals;

struct Events final : ports::AgentHub::Events {
  void on_agent(core::AgentId id, const core::AgentFacts& facts) override {
    come.push_back(id);
    last = facts;
  }
  void on_agent_gone(core::AgentId id, std::string_view) override { gone.push_back(id); }
  std::vector<core::AgentId> come;
  std::vector<core::AgentId> gone;
  std::optional<core::AgentFacts> last;
};

/// What an agent holds once it is welcome.
struct Client {
  UniqueFd socket;
  agent_abi::Welcome welcome{};
  UniqueFd control;
  UniqueFd telemetry;
};

class AgentSocketTest : public ::testing::Test {
 protected:
  AgentSocketTest() {
    std::string name = (std::filesystem::temp_directory_path() / "apusched-agents-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    loop_ = std::move(*SdEventLoop::create());
  }
  ~AgentSocketTest() override {
    hub_.reset();
    std::filesystem::remove_all(directory_);
  }

  void open(AgentSocketOptions options = {}) {
    options.path = directory_ + "/agent.sock";
    auto hub = AgentSocket::open(*loop_, processes_, report_, options);
    ASSERT_TRUE(hub) << core::to_sentence(hub.error());
    hub_ = std::move(*hub);
    hub_->set_events(&events_);
  }
  /// Runs the loop until `done`; the watchdog of the test run ends one that never is.
  void until(const std::function<bool()>& done) {
    while (!done()) sd_event_run(loop_->native(), 10'000);
  }
  [[nodiscard]] UniqueFd connect() const {
    UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const auto path = directory_ + "/agent.sock";
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  static agent_abi::Hello hello() {
    agent_abi::Hello greeting{};
    greeting.magic = agent_abi::kMagic;
    greeting.version = agent_abi::kVersion;
    greeting.size = sizeof greeting;
    greeting.features = agent_abi::kFeatureMask;
    greeting.gpu_count = 1;
    greeting.gpus[0] = {0, 0x0400, 12, "gfx1035"};
    return greeting;
  }
  Client greet(const agent_abi::Hello& greeting) {
    Client client{connect(), {}, {}, {}};
    EXPECT_EQ(::send(client.socket.get(), &greeting, sizeof greeting, 0), sizeof greeting);
    ssize_t size = -1;
    until([&] { return (size = receive(client)) >= 0; });
    return client;
  }
  static ssize_t receive(Client& client) {
    iovec part{&client.welcome, sizeof client.welcome};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> room{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = room.data();
    message.msg_controllen = room.size();
    const auto size = ::recvmsg(client.socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (const auto* header = CMSG_FIRSTHDR(&message); size >= 0 && header != nullptr) {
      std::array<int, 2> fds{};
      std::memcpy(fds.data(), CMSG_DATA(header), sizeof fds);
      client.control.reset(fds[0]);
      client.telemetry.reset(fds[1]);
    }
    return size;
  }
  [[nodiscard]] agent_abi::Refusal refusal(const Client& client) const {
    return static_cast<agent_abi::Refusal>(client.welcome.refusal);
  }

  std::string directory_;
  std::unique_ptr<SdEventLoop> loop_;
  ProcfsProcesses processes_;
  doubles::RecordingReport report_;
  Events events_;
  std::unique_ptr<AgentSocket> hub_;
};

TEST_F(AgentSocketTest, a_greeting_is_answered_with_two_pages) {
  open();
  const auto client = greet(hello());
  EXPECT_EQ(refusal(client), agent_abi::Refusal::none);
  ASSERT_TRUE(client.control && client.telemetry);
  ASSERT_EQ(events_.come.size(), 1U);
  EXPECT_EQ(events_.last->process.pid.value(), ::getpid());
}

TEST_F(AgentSocketTest, the_pages_can_be_neither_resized_nor_the_control_page_written) {
  open();
  const auto client = greet(hello());
  for (const auto* fd : {&client.control, &client.telemetry}) {
    EXPECT_NE(::ftruncate(fd->get(), 0), 0);
    EXPECT_NE(::ftruncate(fd->get(), 1 << 20), 0);
  }
  const auto size = sizeof(agent_abi::Control);
  EXPECT_EQ(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, client.control.get(), 0),
            MAP_FAILED);
  EXPECT_LT(::pwrite(client.control.get(), "x", 1, 0), 0);
  void* page = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, client.control.get(), 0);
  ASSERT_NE(page, MAP_FAILED);
  EXPECT_EQ(static_cast<agent_abi::Control*>(page)->magic, agent_abi::kMagic);
  ::munmap(page, size);
}

TEST_F(AgentSocketTest, settings_are_on_the_page_and_a_message_says_so) {
  open();
  auto client = greet(hello());
  core::AgentSettings settings;
  settings.queue_limit = core::QueueLimit::of<3>();
  const auto sequence = hub_->set(events_.come.front(), settings);
  ASSERT_TRUE(sequence);
  agent_abi::Wake wake{};
  ASSERT_EQ(::recv(client.socket.get(), &wake, sizeof wake, 0), sizeof wake);
  EXPECT_EQ(wake.sequence, *sequence);
  agent_abi::Control control{};
  ASSERT_EQ(::pread(client.control.get(), &control, sizeof control, 0), sizeof control);
  EXPECT_EQ(control.queue_limit, 3U);
  EXPECT_EQ(control.sequence, *sequence);
}

TEST_F(AgentSocketTest, an_agent_that_reads_no_messages_does_not_hold_us_up) {
  open();
  const auto client = greet(hello());
  core::AgentSettings settings;
  std::uint32_t last = 0;
  for (std::uint32_t i = 1; i <= 5000; ++i) {
    settings.sample_hz = i % 100;
    last = *hub_->set(events_.come.front(), settings);
  }
  agent_abi::Control control{};
  ASSERT_EQ(::pread(client.control.get(), &control, sizeof control, 0), sizeof control);
  EXPECT_EQ(control.sequence, last);
}

TEST_F(AgentSocketTest, the_end_of_the_connection_is_the_end_of_the_agent) {
  open();
  auto client = greet(hello());
  const auto id = events_.come.front();
  client.socket.reset();
  until([&] { return !events_.gone.empty(); });
  EXPECT_FALSE(hub_->set(id, {}));
  EXPECT_FALSE(hub_->read(id));
}

TEST_F(AgentSocketTest, an_agent_that_talks_is_dropped) {
  open();
  auto client = greet(hello());
  ::send(client.socket.get(), "hello?", 6, 0);
  until([&] { return !events_.gone.empty(); });
}

TEST_F(AgentSocketTest, a_process_has_one_agent) {
  open();
  const auto first = greet(hello());
  const auto second = greet(hello());
  EXPECT_EQ(refusal(second), agent_abi::Refusal::full);
  EXPECT_FALSE(second.control);
  EXPECT_EQ(events_.come.size(), 1U);
  EXPECT_TRUE(events_.gone.empty());
}

TEST_F(AgentSocketTest, more_agents_than_configured_are_told_so) {
  AgentSocketOptions none;
  none.max_agents = 0;
  open(none);
  EXPECT_EQ(refusal(greet(hello())), agent_abi::Refusal::full);
}

TEST_F(AgentSocketTest, another_version_and_nonsense_are_told_apart) {
  open();
  auto newer = hello();
  newer.version = 99;
  EXPECT_EQ(refusal(greet(newer)), agent_abi::Refusal::version);
  auto nonsense = hello();
  nonsense.gpu_count = 1000;
  EXPECT_EQ(refusal(greet(nonsense)), agent_abi::Refusal::malformed);
  EXPECT_TRUE(events_.come.empty());
}

TEST_F(AgentSocketTest, who_connects_and_says_nothing_is_sent_away) {
  AgentSocketOptions hasty;
  hasty.greeting_deadline = 1ms;
  open(hasty);
  const auto socket = connect();
  char byte = 0;
  until([&] { return ::recv(socket.get(), &byte, 1, MSG_DONTWAIT) == 0; });
}

TEST_F(AgentSocketTest, who_connects_again_and_again_waits) {
  AgentSocketOptions slow;
  slow.max_connections_per_second = 2;
  open(slow);
  std::vector<UniqueFd> sockets;
  for (int i = 0; i < 3; ++i) {
    sockets.push_back(connect());
    const auto greeting = agent_abi::Hello{};  // refused
    ::send(sockets.back().get(), &greeting, sizeof greeting, 0);
  }
  // None is lost: the third is answered when the second is over.
  for (const auto& socket : sockets)
    until([&] {
      agent_abi::Welcome welcome{};
      return ::recv(socket.get(), &welcome, sizeof welcome, MSG_DONTWAIT | MSG_PEEK) >= 0;
    });
}

TEST_F(AgentSocketTest, descriptors_sent_along_are_not_kept) {
  open();
  Client client{connect(), {}, {}, {}};
  auto greeting = hello();
  iovec part{&greeting, sizeof greeting};
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  UniqueFd reader(pipe[0]);
  UniqueFd writer(pipe[1]);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = room.size();
  auto* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  const int sent = writer.get();
  std::memcpy(CMSG_DATA(header), &sent, sizeof sent);
  ASSERT_EQ(::sendmsg(client.socket.get(), &message, 0), sizeof greeting);
  writer.reset();
  ssize_t size = -1;
  until([&] { return (size = receive(client)) >= 0; });
  char byte = 0;
  EXPECT_EQ(::read(reader.get(), &byte, 1), 0);  // nobody holds the other end
}

TEST_F(AgentSocketTest, garbage_on_the_telemetry_page_is_counted_and_not_believed) {
  open();
  const auto client = greet(hello());
  const std::vector<char> garbage(sizeof(agent_abi::Telemetry), 0x42);
  ASSERT_EQ(::pwrite(client.telemetry.get(), garbage.data(), garbage.size(), 0),
            static_cast<ssize_t>(garbage.size()));
  EXPECT_FALSE(hub_->read(events_.come.front()));
  EXPECT_EQ(hub_->rejected(), 1U);
}

TEST_F(AgentSocketTest, the_death_of_the_process_is_noticed_even_if_its_child_keeps_the_socket) {
  open();
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  UniqueFd reader(pipe[0]);
  UniqueFd writer(pipe[1]);
  const pid_t parent = ::fork();
  if (parent == 0) {
    const auto socket = connect();
    const auto greeting = hello();
    ::send(socket.get(), &greeting, sizeof greeting, 0);
    agent_abi::Welcome welcome{};
    ::recv(socket.get(), &welcome, sizeof welcome, 0);
    const pid_t child = ::fork();
    if (child == 0) ::pause();
    if (::write(writer.get(), &child, sizeof child) != sizeof child) ::_exit(1);
    ::_exit(0);
  }
  until([&] { return !events_.come.empty(); });
  pid_t child = 0;
  ASSERT_EQ(::read(reader.get(), &child, sizeof child), sizeof child);
  until([&] { return !events_.gone.empty(); });
  ::kill(child, SIGKILL);
  ::waitpid(parent, nullptr, 0);
}

TEST_F(AgentSocketTest, the_socket_is_open_to_all_and_gone_afterwards) {
  open();
  const auto path = directory_ + "/agent.sock";
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0666));
  hub_.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(AgentSocketTest, what_an_earlier_run_left_is_no_obstacle) {
  std::filesystem::create_directories(directory_);
  { UniqueFd file(::open((directory_ + "/agent.sock").c_str(), O_CREAT | O_WRONLY, 0600)); }
  open();
  EXPECT_EQ(refusal(greet(hello())), agent_abi::Refusal::none);
}

TEST_F(AgentSocketTest, a_path_that_no_socket_can_have_is_an_error_with_its_name) {
  AgentSocketOptions options;
  options.path = directory_ + "/" + std::string(200, 'a');
  const auto hub = AgentSocket::open(*loop_, processes_, report_, options);
  ASSERT_FALSE(hub);
  EXPECT_EQ(hub.error().code, core::ErrorCode::invalid_input);
}

}  // namespace
}  // namespace apusched::platform
