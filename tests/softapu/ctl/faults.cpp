// SPDX-License-Identifier: MIT
#include "ctl/faults.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "session/layout.h"

namespace apusched::softapu {
namespace fs = std::filesystem;
namespace {

volatile std::sig_atomic_t ended = 0;

int connect_supervisor(const std::string& session, std::size_t gpu) {
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const timeval timeout{5, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  // Through /proc/self/fd: a session directory's own path may be longer than sun_path.
  const int dir = open(session.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", dir,
                file_of(kControlSocket, gpu).c_str());
  const bool ok = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  const int error = errno;
  close(dir);
  if (ok) return fd;
  close(fd);
  errno = error;
  return -1;
}

}  // namespace

FaultControl::FaultControl(std::string session, std::size_t gpu)
    : session_(std::move(session)),
      gpu_(gpu),
      device_(SharedDevice::open(session_ + "/" + file_of(kStateFile, gpu))) {
  if (!fs::exists(fs::path(session_) / kReadyFile))
    throw std::runtime_error("no session is served at " + session_);
  if (device_ == nullptr) throw std::runtime_error("the session has no GPU " + std::to_string(gpu));
}

// The engines of all clients, then the tree.
Complaint FaultControl::tell() {
  for (Client& client : device_->unlocked().clients) wake_client(client);
  futex_wake_all(device_->unlocked().faults.changed);
  const int fd = connect_supervisor(session_, gpu_);
  const Request request{RequestKind::faults_changed};
  Reply reply;
  const bool told = fd >= 0 && send(fd, &request, sizeof request, MSG_NOSIGNAL) > 0 &&
                    recv(fd, &reply, sizeof reply, 0) == sizeof reply;
  const std::string why = std::strerror(told ? reply.error : errno);
  if (fd >= 0) close(fd);
  if (told && reply.error == 0) return std::nullopt;
  return "the session's supervisor does not do it: " + why;
}

Complaint FaultControl::set(Fault fault, bool on) {
  {
    SharedDevice::Access access(*device_);
    // A GPU that comes back has been started afresh.
    if (fault == Fault::gone && !on) access->set_level(Level::automatic, access.now());
    access->set_fault(fault, on, access.now());
  }
  return tell();
}

Complaint FaultControl::reset(bool hold) {
  {
    SharedDevice::Access access(*device_);
    access->set_fault(Fault::resetting, hold, access.now());
    // A reset ends a hang.
    access->set_fault(Fault::hang, false, access.now());
    access->lose_clients(access.now());
  }
  return tell();
}

Complaint FaultControl::remove_device() {
  {
    SharedDevice::Access access(*device_);
    access->set_fault(Fault::gone, true, access.now());
    access->lose_clients(access.now());
  }
  return tell();
}

Complaint FaultControl::slow_sysfs(std::uint32_t milliseconds) {
  device_->unlocked().faults.slow_ms = milliseconds;
  return set(Fault::slow_sysfs, true);
}

Complaint FaultControl::stop_queue(std::uint32_t pid, std::optional<std::uint32_t> id) {
  bool found = false;
  {
    SharedDevice::Access access(*device_);
    for (const QueueState& queue : access.state().queues) {
      if (queue.used == 0 || access.state().clients[queue.client].pid != pid) continue;
      if (id && queue.id != *id) continue;
      found = true;
      if (!access->stop_queue(pid, queue.id, access.now())) return "no more than eight queues";
    }
  }
  if (found) return tell();
  return "process " + std::to_string(pid) + " has no queue" +
         (id ? " " + std::to_string(*id) : std::string());
}

std::string FaultControl::device_directory() const {
  const fs::path way = fs::path(session_) / "sys/bus/pci/drivers/amdgpu" /
                       device_->unlocked().description.pci_address.data();
  std::error_code gone;
  const fs::path real = fs::canonical(way, gone);
  return (gone ? way : real).string();
}

Complaint FaultControl::vanish(const std::string& file) {
  const fs::path path = fs::path(file).lexically_normal();
  if (path.is_absolute() || path.empty() || *path.begin() == ".." ||
      !fs::is_regular_file(device_directory() / path))
    return "no file " + file + " below " + device_directory();
  {
    SharedDevice::Access access(*device_);
    auto& names = access.state().faults.vanished;
    const auto free = std::ranges::find_if(names, [](const auto& name) { return name[0] == 0; });
    const std::string text = path.string();
    if (free == names.end() || text.size() >= free->size()) return "no more than eight short names";
    std::ranges::copy(text, free->begin());
    (*free)[text.size()] = '\0';
  }
  return set(Fault::vanished_file, true);
}

Complaint FaultControl::write_level(const std::string& level) {
  const auto known = parse_level(level);
  const std::uint32_t allowed = device_->unlocked().description.allowed_levels;
  if (!known || (allowed >> static_cast<unsigned>(*known) & 1U) == 0)
    return "this GPU has no level " + level;
  const std::string path = device_directory() + "/" + kLevelFileName;
  const int fd = open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  const bool ok = fd >= 0 && write(fd, level.data(), level.size()) > 0;
  const std::string why = std::strerror(errno);
  if (fd >= 0) close(fd);
  if (!ok) return path + ": " + why;
  return std::nullopt;
}

Complaint FaultControl::clear() {
  for (std::uint32_t i = 0; i < kFaults; i++)
    if (device_->unlocked().faults.has(Fault{i}))
      if (auto complaint = set(Fault{i}, false)) return complaint;
  return std::nullopt;
}

std::vector<std::string> FaultControl::list() {
  std::vector<std::string> lines;
  SharedDevice::Access access(*device_);
  const FaultState& faults = access.state().faults;
  for (std::uint32_t i = 0; i < kFaults; i++) {
    if (!faults.has(Fault{i})) continue;
    std::string line = kFaultNames[i];
    if (Fault{i} == Fault::slow_sysfs) line += " " + std::to_string(faults.slow_ms.load());
    if (Fault{i} == Fault::stopped_queue)
      for (const auto& [pid, id] : faults.stopped)
        if (pid != 0) line += " " + std::to_string(pid) + ":" + std::to_string(id);
    if (Fault{i} == Fault::vanished_file)
      for (const auto& name : faults.vanished)
        if (name[0] != '\0') line += std::string(" ") + name.data();
    lines.push_back(line);
  }
  return lines;
}

std::string FaultControl::card() const {
  return "card" + std::to_string(device_->unlocked().description.drm_card);
}

std::string FaultControl::render_node() const {
  return "renderD" + std::to_string(device_->unlocked().description.drm_render_minor);
}

void FaultControl::hold(Fault fault) {
  for (const int number : {SIGTERM, SIGINT}) std::signal(number, [](int) { ended = 1; });
  FaultState& faults = device_->unlocked().faults;
  while (ended == 0 && faults.has(fault))
    // The signal may arrive just before the wait.
    futex_wait(faults.changed, faults.changed.load(),
               monotonic_now() + std::chrono::milliseconds{100});
}

}  // namespace apusched::softapu
