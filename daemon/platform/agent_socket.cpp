// SPDX-License-Identifier: MIT
#include "platform/agent_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "platform/errno_error.hpp"

namespace apusched::platform {

using namespace std::chrono_literals;

namespace {

constexpr int kBacklog = 64;
/// Connected and silent: a quarter of these would already be a flood.
constexpr std::size_t kMaxGuests = 64;

core::Result<UniqueFd> bind_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return core::fail(core::ErrorCode::invalid_input, "open socket", path, "the path is too long");
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return tl::unexpected(errno_error(errno, "open socket", path));
  ::unlink(path.c_str());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      // Whoever may connect can only have its own queues managed.
      ::chmod(path.c_str(), 0666) != 0 || ::listen(fd.get(), kBacklog) != 0)
    return tl::unexpected(errno_error(errno, "open socket", path));
  return fd;
}

std::optional<core::Pid> peer_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return core::Pid::make(peer.pid);  // 0 where the peer is in a PID namespace that we cannot see
}

/// With two descriptors, or with none where the agent is refused.
bool send_welcome(int socket, agent_abi::Refusal refusal, int control = -1, int telemetry = -1) {
  agent_abi::Welcome welcome{agent_abi::kMagic, agent_abi::kVersion, sizeof welcome,
                             static_cast<std::uint32_t>(refusal)};
  iovec part{&welcome, sizeof welcome};
  const std::array<int, 2> fds{control, telemetry};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fds)> room{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (control >= 0) {
    message.msg_control = room.data();
    message.msg_controllen = room.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fds);
    std::memcpy(CMSG_DATA(header), fds.data(), sizeof fds);
  }
  return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof welcome;
}

agent_abi::Refusal refusal_of(const core::Error& error) {
  switch (error.code) {
    case core::ErrorCode::unsupported:
      return agent_abi::Refusal::version;
    case core::ErrorCode::invalid_input:
      return agent_abi::Refusal::malformed;
    case core::ErrorCode::limit_reached:
    case core::ErrorCode::contended:
      return agent_abi::Refusal::full;
    default:
      return agent_abi::Refusal::peer;
  }
}

}  // namespace

core::Result<std::unique_ptr<AgentSocket>> AgentSocket::open(ports::EventLoop& loop,
                                                             ports::ProcessSource& processes,
                                                             ports::Report& report,
                                                             AgentSocketOptions options) {
  auto listener = bind_socket(options.path);
  if (!listener) return tl::unexpected(listener.error());
  std::unique_ptr<AgentSocket> hub(
      new AgentSocket(loop, processes, report, std::move(options), std::move(*listener)));
  hub->listen();
  return hub;
}

AgentSocket::AgentSocket(ports::EventLoop& loop, ports::ProcessSource& processes,
                         ports::Report& report, AgentSocketOptions options, UniqueFd listener)
    : loop_(loop),
      processes_(processes),
      report_(report),
      options_(std::move(options)),
      listener_(std::move(listener)) {}

AgentSocket::~AgentSocket() {
  ::unlink(options_.path.c_str());
}

void AgentSocket::listen() {
  connects_ = loop_.watch_readable(listener_.get(), [this] { accept_one(); });
}

void AgentSocket::accept_one() {
  const auto now = loop_.now();
  if (now - second_ >= 1s) {
    second_ = now;
    in_this_second_ = 0;
  }
  if (++in_this_second_ > options_.max_connections_per_second || guests_.size() >= kMaxGuests) {
    connects_.reset();
    pause_ = loop_.after(1s, [this] {
      const auto done = std::move(pause_);
      listen();
    });
    return;
  }
  UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return;
  const auto id = *core::AgentId::make(next_id_++);
  auto& guest = guests_[id];
  guest.readable = loop_.watch_readable(socket.get(), [this, id] { greeted(id); });
  guest.deadline = loop_.after(options_.greeting_deadline, [this, id] { guests_.erase(id); });
  guest.socket = std::move(socket);
}

void AgentSocket::greeted(core::AgentId id) {
  auto guest = guests_.extract(id);
  if (guest.empty()) return;
  // One byte more than a Hello: a longer one is seen to be longer.
  std::array<std::byte, sizeof(agent_abi::Hello) + 1> buffer{};
  // Descriptors that come with it are closed by the kernel: there is no room for them.
  const auto size = ::recv(guest.mapped().socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (size <= 0) return;
  // A descriptor is watched once: it is the agent's turn.
  guest.mapped().readable.reset();
  auto& socket = guest.mapped().socket;
  const auto hello = std::span(buffer).first(static_cast<std::size_t>(size));
  if (const auto welcomed = welcome(id, socket, hello); !welcomed) {
    tell(welcomed.error());
    if (socket) static_cast<void>(send_welcome(socket.get(), refusal_of(welcomed.error())));
  }
}

/// At most one a second: whoever wants can be refused as often as he likes.
void AgentSocket::tell(const core::Error& error) {
  const auto now = loop_.now();
  if (now - told_ < 1s) return;
  told_ = now;
  report_.info(core::to_sentence(error));
}

bool AgentSocket::knows(const core::ProcessKey& process) const {
  for (const auto& [id, agent] : agents_)
    if (agent->facts.process == process) return true;
  return false;
}

core::Result<core::AgentFacts> AgentSocket::admit(core::Pid pid, std::span<const std::byte> hello) {
  const auto text = core::to_string(pid);
  const auto identity = processes_.identity(pid);
  if (!identity) return tl::unexpected(identity.error());
  auto facts = parse_hello(hello, identity->key);
  if (!facts) {
    facts.error().target = text;
    return facts;
  }
  if (agents_.size() >= options_.max_agents)
    return core::fail(core::ErrorCode::limit_reached, "talk to the agent in", text,
                      "agent.max_agents = " + std::to_string(options_.max_agents) + " is reached");
  if (knows(identity->key))
    return core::fail(core::ErrorCode::contended, "talk to the agent in", text,
                      "that process has one already");
  return facts;
}

core::Result<void> AgentSocket::welcome(core::AgentId id, UniqueFd& socket,
                                        std::span<const std::byte> hello) {
  const auto pid = peer_of(socket.get());
  if (!pid)
    return core::fail(core::ErrorCode::denied, "talk to an agent", {},
                      "its process is in a PID namespace that cannot be seen from here");
  auto process = processes_.open(*pid);
  if (!process) return tl::unexpected(process.error());
  auto facts = admit(*pid, hello);
  if (!facts) return tl::unexpected(facts.error());
  auto control = SharedPage::make("apusched-control", sizeof(agent_abi::Control),
                                  SharedPage::Writer::us_alone);
  if (!control) return tl::unexpected(control.error());
  auto telemetry = SharedPage::make("apusched-telemetry", sizeof(agent_abi::Telemetry),
                                    SharedPage::Writer::both);
  if (!telemetry) return tl::unexpected(telemetry.error());
  const auto gpus = facts->gpus.size();
  auto agent = std::make_unique<Agent>(Agent{{},
                                             std::move(*facts),
                                             std::move(control->page),
                                             std::move(telemetry->page),
                                             ReportChecker(gpus),
                                             std::move(*process),
                                             nullptr,
                                             nullptr});
  publish(agent->control.as<agent_abi::Control>(), to_control({}, agent->facts.gpus),
          agent->sequence += 2);
  // Whatever comes after the greeting, the end included, is the end.
  agent->readable =
      loop_.watch_readable(socket.get(), [this, id] { drop(id, "its connection ended"); });
  agent->exit_watch =
      loop_.watch_readable(agent->process->exit_fd(), [this, id] { drop(id, "it has exited"); });
  if (agent->readable == nullptr || agent->exit_watch == nullptr)
    return core::fail(core::ErrorCode::limit_reached, "talk to the agent in", core::to_string(*pid),
                      "no file descriptor left to watch it with");
  if (!send_welcome(socket.get(), agent_abi::Refusal::none, control->fd.get(), telemetry->fd.get()))
    return core::fail(core::ErrorCode::gone, "talk to the agent in", core::to_string(*pid),
                      "it does not listen");
  agent->socket = std::move(socket);
  const auto& known = *agents_.emplace(id, std::move(agent)).first->second;
  if (events_ != nullptr) events_->on_agent(id, known.facts);
  return {};
}

void AgentSocket::drop(core::AgentId id, std::string_view why) {
  const auto agent = agents_.extract(id);
  if (agent.empty()) return;
  if (events_ != nullptr) events_->on_agent_gone(id, why);
}

core::Result<std::uint32_t> AgentSocket::set(core::AgentId id,
                                             const core::AgentSettings& settings) {
  const auto found = agents_.find(id);
  if (found == agents_.end())
    return core::fail(core::ErrorCode::gone, "set up agent", core::to_string(id), "it is gone");
  auto& agent = *found->second;
  publish(agent.control.as<agent_abi::Control>(), to_control(settings, agent.facts.gpus),
          agent.sequence += 2);
  const agent_abi::Wake wake{agent_abi::kMagic, agent.sequence};
  // Full: it has not read what woke it before, and will see this too. Broken: its end is told.
  static_cast<void>(::send(agent.socket.get(), &wake, sizeof wake, MSG_DONTWAIT | MSG_NOSIGNAL));
  return agent.sequence;
}

std::optional<core::AgentReport> AgentSocket::read(core::AgentId id) {
  const auto found = agents_.find(id);
  if (found == agents_.end()) return std::nullopt;
  auto& agent = *found->second;
  const auto page = snapshot(agent.telemetry.as<agent_abi::Telemetry>());
  const auto verdict =
      page ? agent.checker.check(*page, agent.sequence) : ReportChecker::Verdict::unchanged;
  if (verdict == ReportChecker::Verdict::senseless) {
    ++rejected_;
    if (!std::exchange(agent.senseless, true))
      report_.warning("the agent in process " + core::to_string(agent.facts.process.pid) +
                      " reports nonsense; its reports are not used");
    return std::nullopt;
  }
  return agent.checker.report();
}

}  // namespace apusched::platform
