// SPDX-License-Identifier: MIT
#include "launcher/supervisor.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <system_error>

#include "device/power.h"

namespace apusched::softapu {
namespace {

constexpr std::chrono::milliseconds kPeriod{100};

int check(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

int listen_at(const std::filesystem::path& directory, const std::string& name) {
  const int fd = check(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket");
  // Through /proc/self/fd, because the directory's path may be longer than sun_path.
  const int dir = check(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC), "session");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", dir,
                name.c_str());
  check(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), "bind");
  check(chmod((directory / name).c_str(), 0666), "chmod");
  check(listen(fd, 64), "listen");
  close(dir);
  return fd;
}

}  // namespace

Supervisor::Supervisor(const std::filesystem::path& directory, const MachineModel& model,
                       std::size_t gpu, const SupervisorOptions& options)
    : description_(model.device),
      gpu_(gpu),
      directory_(directory),
      paths_(directory, model),
      card_(model.card),
      tree_(paths_, model, options.traps, gpu == 0),
      hidden_(directory / file_of(kHiddenFiles, gpu)),
      cpu_load_(options.cpu_load) {
  device_ = SharedDevice::create((directory / file_of(kStateFile, gpu)).string(), description_);
  if (device_ == nullptr) check(-1, "state file");
  epoll_ = check(epoll_create1(EPOLL_CLOEXEC), "epoll");
  listen_ = listen_at(directory, file_of(kControlSocket, gpu));
  if (gpu == 0) take_signals();
  timer_ = check(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd");
  inotify_ = check(inotify_init1(IN_CLOEXEC | IN_NONBLOCK), "inotify");
  refresh();
  tree_.show_level(Level::automatic);
  check(inotify_add_watch(inotify_, tree_.level_file().c_str(), IN_CLOSE_WRITE | IN_MODIFY),
        "inotify");
  for (const int fd : {listen_, timer_, inotify_}) watch(fd);
}

void Supervisor::take_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = check(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
  watch(signals_);
}

void Supervisor::serve_also(Supervisor& other) {
  others_[other.epoll_] = &other;
  watch(other.epoll_);
}

Supervisor::~Supervisor() {
  while (!connections_.empty()) end(connections_.begin()->first);
  for (const int fd : {epoll_, listen_, signals_, inotify_, timer_})
    if (fd >= 0) close(fd);
}

void Supervisor::watch(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  check(epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

int Supervisor::run(std::optional<pid_t> child) {
  constexpr int kForEver = -1;
  while (dispatch(child, kForEver)) {
  }
  return status_;
}

bool Supervisor::dispatch(std::optional<pid_t> child, int timeout_ms) {
  // One at a time: an event taken earlier may be of a descriptor that was closed meanwhile, and its
  // number be that of somebody who just came.
  epoll_event event{};
  if (epoll_wait(epoll_, &event, 1, timeout_ms) != 1) return true;
  const int fd = event.data.fd;
  if (fd == signals_) return on_signal(child);
  if (const auto other = others_.find(fd); other != others_.end()) {
    other->second->dispatch(std::nullopt, 0);
  } else if (fd == listen_) {
    on_accept();
  } else if (fd == inotify_) {
    on_level_event();
  } else if (fd == timer_) {
    on_timer();
  } else if (const auto it = pidfds_.find(fd); it != pidfds_.end()) {
    end(it->second);
  } else if (connections_.contains(fd)) {
    on_connection(fd);
  }
  return true;
}

bool Supervisor::on_signal(std::optional<pid_t> child) {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD) {
      if (child && waitpid(*child, &status_, WNOHANG) == *child) return false;
    } else if (!child) {
      return false;
    } else if (info.ssi_code != SI_KERNEL) {
      // What the terminal sends has reached the child already.
      kill(*child, number);
    }
  }
  return true;
}

void Supervisor::on_accept() {
  const int fd = accept4(listen_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  ucred peer{};
  socklen_t size = sizeof peer;
  getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
  Connection& connection = connections_[fd];
  connection.socket = fd;
  connection.pid = static_cast<std::uint32_t>(peer.pid);
  // The process's end too: a child made without our fork handlers may keep the connection open.
  connection.pidfd = static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0));
  if (connection.pidfd >= 0) {
    pidfds_[connection.pidfd] = fd;
    watch(connection.pidfd);
  }
  watch(fd);
}

void Supervisor::on_connection(int fd) {
  Connection& connection = connections_[fd];
  Request request;
  const ssize_t got = recv(fd, &request, sizeof request, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got != sizeof request) return end(fd);
  Reply reply;
  try {
    on_request(connection, request);
  } catch (const std::system_error& error) {
    reply.error = error.code().value();
  }
  if (!is_answered(request.kind)) return;
  if (send(fd, &reply, sizeof reply, MSG_NOSIGNAL) < 0) return end(fd);
  if (request.kind == RequestKind::closed) end(fd);
}

void Supervisor::on_request(Connection& connection, const Request& request) {
  switch (request.kind) {
    case RequestKind::opened:
      if (request.client >= kMaxClients) return;
      connection.client = request.client;
      tree_.add_process(connection.pid, next_pasid_++);
      break;
    case RequestKind::queue_created:
      tree_.add_queue(connection.pid, request.queue, request.ring_bytes);
      connection.queues.insert(request.queue);
      break;
    case RequestKind::queue_destroyed:
      tree_.remove_queue(connection.pid, request.queue);
      connection.queues.erase(request.queue);
      break;
    case RequestKind::memory_changed:
    case RequestKind::works:
      break;
    case RequestKind::faults_changed:
      on_faults();
      break;
    case RequestKind::closed:
      connection.client.reset();  // the client freed its slot itself
      tree_.remove_process(connection.pid);
      connection.queues.clear();
      break;
  }
  set_timer();
}

void Supervisor::end(int socket) {
  const auto it = connections_.find(socket);
  if (it == connections_.end()) return;
  const Connection connection = it->second;
  connections_.erase(it);
  pidfds_.erase(connection.pidfd);
  if (connection.pidfd >= 0) close(connection.pidfd);
  close(connection.socket);
  if (connection.client) {
    SharedDevice::Access access(*device_);
    access->remove_client(ClientIndex{*connection.client}, access.now());
    access.state().clients_reaped++;
  }
  const bool other = std::any_of(connections_.begin(), connections_.end(), [&](const auto& entry) {
    return entry.second.pid == connection.pid;
  });
  if (!other) tree_.remove_process(connection.pid);
  set_timer();
}

void Supervisor::on_level_event() {
  alignas(inotify_event) char buffer[4096];
  bool closed = false;
  for (ssize_t got = 0; (got = read(inotify_, buffer, sizeof buffer)) > 0;)
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      closed |= (event->mask & IN_CLOSE_WRITE) != 0;
      at += static_cast<ssize_t>(sizeof *event + event->len);
    }
  const std::string text = tree_.read_level();
  bool known = false;
  Level now{};
  {
    SharedDevice::Access access(*device_);
    const auto wanted = parse_level_written_over(text, access.state().level);
    known = wanted.has_value();
    if (wanted && *wanted != access.state().level) access->set_level(*wanted, access.now());
    now = access.state().level;
  }
  // Refused or garbage: the last valid level again, once the writer is done.
  if (closed || known) tree_.show_level(now);
  set_timer();
}

void Supervisor::set_timer() {
  const bool wanted = std::any_of(connections_.begin(), connections_.end(),
                                  [](const auto& c) { return !c.second.queues.empty(); });
  refresh();
  run_timer(wanted);
}

void Supervisor::run_timer(bool on) {
  if (on == timer_on_) return;
  timer_on_ = on;
  itimerspec spec{};
  if (on) {
    const auto ns = std::chrono::duration_cast<Nanoseconds>(kPeriod).count();
    spec.it_interval.tv_nsec = spec.it_value.tv_nsec = static_cast<long>(ns);
  }
  timerfd_settime(timer_, 0, &spec, nullptr);
}

void Supervisor::on_timer() {
  std::uint64_t ticks = 0;
  while (read(timer_, &ticks, sizeof ticks) == sizeof ticks) {
  }
  if (refresh(!cpu_load_.is_measured())) run_timer(false);
}

bool Supervisor::refresh(bool may_rest) {
  Readings readings;
  bool rests = false;
  std::map<std::uint32_t, std::uint64_t> vram;
  {
    SharedDevice::Access access(*device_);
    DeviceState& state = access.state();
    const Nanoseconds elapsed = access.now() - last_refresh_;
    // Events between two ticks must not make windows too short to mean anything.
    if (elapsed >= kPeriod / 2 || last_refresh_.count() == 0) {
      const double window = static_cast<double>(elapsed.count());
      const double busy = static_cast<double>(state.busy_ns - last_busy_ns_) / window;
      access->set_cpu_load(cpu_load_.sample(), access.now());
      // The firmware says "busy" for a clock that it keeps up (ROCm/TheRock#7578).
      state.busy_percent =
          clock_is_pinned(state)
              ? 100
              : static_cast<std::uint32_t>(std::lround(std::clamp(busy, 0.0, 1.0) * 100));
      last_refresh_ = access.now();
      last_busy_ns_ = state.busy_ns;
    }
    // In the same breath as the readings: a kernel launched later finds it and wakes us.
    rests = may_rest && settled(state);
    state.readings_rest = rests ? 1 : 0;
    readings.now = access.now();
    readings.sclk_mhz = state.sclk_mhz;
    readings.mclk_index = state.mclk_index;
    readings.busy_percent = state.busy_percent;
    readings.power_w = state.power_w;
    readings.gfx_power_w = state.gfx_power_w;
    readings.cpu_power_w = state.cpu_power_w;
    readings.cpu_load = state.cpu_load;
    readings.throttled = state.throttled;
    readings.temperature_c = state.temperature_c;
    readings.level = state.level;
    for (const Client& client : state.clients) {
      if (client.pid == 0) continue;
      readings.vram_used += client.vram_used;
      readings.gtt_used += client.gtt_used;
      vram[client.pid] += client.vram_used;
    }
  }
  tree_.show(readings);
  for (const auto& [fd, connection] : connections_)
    if (connection.client) {
      const auto it = vram.find(connection.pid);
      if (it != vram.end()) tree_.show_process_memory(connection.pid, it->second);
    }
  return rests;
}

}  // namespace apusched::softapu
