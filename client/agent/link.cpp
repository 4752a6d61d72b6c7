// SPDX-License-Identifier: MIT
#include "agent/link.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace apusched::agent {
namespace {

// More than are ever sent, so that what a broken daemon sends can be closed.
constexpr std::size_t kMostDescriptors = 8;
// Wakes of one turn: a daemon that floods does not keep the thread from its other work.
constexpr int kWakesAtOnce = 64;

struct Received {
  ssize_t bytes = -1;
  bool truncated = false;
  std::size_t count = 0;
  std::array<Descriptor, kMostDescriptors> descriptors;
};

void take_descriptors(msghdr& message, Received* received) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; i++) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part) + i * sizeof number, sizeof number);
      if (received->count < kMostDescriptors)
        received->descriptors[received->count++].reset(number);
      else
        close(number);
    }
  }
}

void receive_message(int socket, void* buffer, std::size_t size, Received* received) {
  alignas(cmsghdr) char ancillary[CMSG_SPACE(kMostDescriptors * sizeof(int))];
  iovec part{.iov_base = buffer, .iov_len = size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  received->bytes = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (received->bytes < 0) return;
  received->truncated = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  take_descriptors(message, received);
}

bool only_later() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

}  // namespace

Link::Event Link::connect(const std::string& path, const agent_abi::Hello& hello) noexcept {
  close();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Event::absent;
  std::memcpy(address.sun_path, path.data(), path.size());
  socket_.reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_.is_open()) return Event::busy;
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const bool nobody = errno == ENOENT || errno == ENOTDIR;
    close();
    return nobody ? Event::absent : Event::busy;
  }
  if (send(socket_.get(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) {
    close();
    return Event::busy;
  }
  return Event::greeted;
}

Link::Event Link::receive() noexcept {
  return is_welcome() ? take_wake() : take_welcome();
}

Link::Event Link::take_welcome() noexcept {
  agent_abi::Welcome welcome{};
  Received received;
  receive_message(socket_.get(), &welcome, sizeof welcome, &received);
  if (received.bytes < 0 && only_later()) return Event::nothing;
  if (received.bytes != sizeof welcome || received.truncated || welcome.magic != agent_abi::kMagic)
    return Event::ended;
  // A daemon of another release says so in the first words of any Welcome.
  if (welcome.refusal != static_cast<std::uint32_t>(agent_abi::Refusal::none))
    return Event::refused;
  if (welcome.version != agent_abi::kVersion || welcome.size != sizeof welcome ||
      received.count != 2)
    return Event::ended;
  if (!control_.map(received.descriptors[0].get(), sizeof(agent_abi::Control), false) ||
      !telemetry_.map(received.descriptors[1].get(), sizeof(agent_abi::Telemetry), true)) {
    control_.unmap();
    return Event::ended;
  }
  return Event::welcomed;
}

Link::Event Link::take_wake() noexcept {
  Event event = Event::nothing;
  for (int i = 0; i < kWakesAtOnce; i++) {
    agent_abi::Wake wake{};
    Received received;
    receive_message(socket_.get(), &wake, sizeof wake, &received);
    if (received.bytes < 0 && only_later()) return event;
    if (received.bytes != sizeof wake || received.truncated || received.count != 0 ||
        wake.magic != agent_abi::kMagic)
      return Event::ended;
    event = Event::woken;
  }
  return event;
}

void Link::close() noexcept {
  socket_.reset();
  control_.unmap();
  telemetry_.unmap();
}

}  // namespace apusched::agent
