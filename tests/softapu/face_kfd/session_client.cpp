// SPDX-License-Identifier: MIT
#include "face_kfd/session_client.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

// System calls by number: the functions of the same names are replaced by umockdev's preload
// library or by this one.
namespace apusched::softapu {
namespace {

void raw_close(int fd) {
  const int error = errno;
  if (fd >= 0) syscall(SYS_close, fd);
  errno = error;
}

int connect_supervisor(const char* directory, std::size_t gpu) {
  const int fd = static_cast<int>(syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (fd < 0) return -1;
  const timeval timeout{2, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  // Through /proc/self/fd: a session directory's own path may be longer than sun_path.
  const int dir = static_cast<int>(
      syscall(SYS_openat, AT_FDCWD, directory, O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", dir,
                file_of(kControlSocket, gpu).c_str());
  const bool ok = dir >= 0 && syscall(SYS_connect, fd, &address, sizeof address) == 0;
  raw_close(dir);
  if (ok) return fd;
  raw_close(fd);
  return -1;
}

}  // namespace

std::unique_ptr<SessionClient> SessionClient::join(const char* directory, std::size_t gpu) {
  auto device = SharedDevice::open(std::string(directory) + "/" + file_of(kStateFile, gpu));
  if (device == nullptr) return nullptr;
  const int socket = connect_supervisor(directory, gpu);
  if (socket < 0) return nullptr;
  std::unique_ptr<SessionClient> client(new SessionClient(std::move(device), socket));
  {
    SharedDevice::Access access(*client->device_);
    const auto index = access->add_client(static_cast<std::uint32_t>(getpid()), access.now());
    if (!index) {
      client->abandon();
      errno = EBUSY;
      return nullptr;
    }
    client->index_ = *index;
  }
  const int error = client->tell(RequestKind::opened);
  if (error == 0) return client;
  client.reset();
  errno = error;
  return nullptr;
}

std::size_t SessionClient::gpus(const char* directory) {
  std::size_t count = 0;
  while (syscall(SYS_faccessat, AT_FDCWD,
                 (std::string(directory) + "/" + file_of(kStateFile, count)).c_str(), F_OK) == 0)
    count++;
  return count;
}

SessionClient::~SessionClient() {
  if (socket_ < 0) return;
  {
    SharedDevice::Access access(*device_);
    access->remove_client(index_, access.now());
  }
  tell(RequestKind::closed);
  raw_close(socket_);
}

void SessionClient::abandon() {
  raw_close(socket_);
  socket_ = -1;
}

int SessionClient::tell(RequestKind kind, std::uint32_t queue, std::uint32_t ring_bytes) {
  const std::lock_guard lock(mutex_);
  const Request request{kind, static_cast<std::uint32_t>(index_), queue, ring_bytes};
  const int flags = MSG_NOSIGNAL | (is_answered(kind) ? 0 : MSG_DONTWAIT);
  if (syscall(SYS_sendto, socket_, &request, sizeof request, flags, nullptr, 0) < 0) return errno;
  if (!is_answered(kind)) return 0;
  Reply reply;
  long got = 0;
  do {
    got = syscall(SYS_recvfrom, socket_, &reply, sizeof reply, 0, nullptr, nullptr);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno == EAGAIN ? ETIMEDOUT : errno;
  return got == sizeof reply ? reply.error : EPIPE;
}

}  // namespace apusched::softapu
