// SPDX-License-Identifier: MIT
#include "platform/freezer_process.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "freezer/duty_cycles.hpp"
#include "freezer/group_file.hpp"
#include "platform/clean_spawn.hpp"
#include "platform/errno_error.hpp"
#include "platform/procfs_processes.hpp"

namespace apusched::platform {
namespace {

using namespace std::chrono_literals;
using core::ErrorCode;
using core::FrozenShare;

constexpr int kGuardSocket = 3;
constexpr auto kLossesCountFor = 60s;
constexpr auto kRuns = FrozenShare::of<0>();
constexpr auto kStopped = FrozenShare::of<100>();

core::Error freezer_error(int error, const std::string& operation, const std::string& unit) {
  auto failure = errno_error(error, operation, unit);
  if (error == EBUSY) {
    failure.code = ErrorCode::contended;
    failure.detail = "somebody else freezes or thaws it; left alone";
  }
  if (error == EROFS)
    failure.detail += "; a drop-in of the unit with ProtectControlGroups=no permits it";
  if (error == EOPNOTSUPP)
    failure.detail = "the group has no cgroup.freeze: it takes cgroup v2 and Linux 5.2";
  return failure;
}

}  // namespace

FreezerProcess::FreezerProcess(ports::EventLoop& loop, FreezerOptions options)
    : loop_(loop),
      options_(std::move(options)),
      root_(freezer::unified_root(options_.cgroup_root)) {}

/// The guard sees the end of its socket and lets everything run.
FreezerProcess::~FreezerProcess() = default;

std::optional<int> FreezerProcess::guard_pid() const {
  return guard_ ? std::optional(guard_->pid) : std::nullopt;
}

core::Result<std::vector<core::UnitProcess>> FreezerProcess::processes(const std::string& unit) {
  if (!freezer::is_group_path(unit))
    return core::fail(ErrorCode::invalid_input, "list processes of", unit, "no path of a group");
  return processes_in_group(root_ + unit);
}

core::Result<FrozenShare> FreezerProcess::read(const std::string& unit) {
  const auto frozen = freezer::is_frozen(root_, unit);
  if (!frozen)
    return tl::unexpected(freezer_error(frozen.error().value(), "read freezer of", unit));
  return *frozen ? kStopped : kRuns;
}

void FreezerProcess::set(const std::string& unit, FrozenShare share, DoneCallback done) {
  const bool runs = share == kRuns;
  if (runs)
    wanted_.erase(unit);
  else
    wanted_.insert_or_assign(unit, share);
  if (runs && !guard_) return let_run(unit, done);
  auto sent = guard_ ? core::Result<void>() : start_guard();
  if (sent) sent = send(unit, share, done);
  if (sent) return arm();
  wanted_.erase(unit);
  if (done) loop_.defer([done, error = sent.error()] { done(tl::unexpected(error)); });
}

core::Result<void> FreezerProcess::start_guard() {
  if (!why_not_.empty()) return core::fail(ErrorCode::failed, "start", options_.program, why_not_);
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
    return tl::unexpected(errno_error(errno, "create", "freezer socket"));
  Guard guard{0, UniqueFd(ends[0]), nullptr};
  const UniqueFd its(ends[1]);
  const auto pid = spawn_clean({options_.program, "--fd", std::to_string(kGuardSocket),
                                "--cgroup-root", options_.cgroup_root},
                               {{its.get(), kGuardSocket}});
  if (!pid) return tl::unexpected(pid.error());
  guard.pid = *pid;
  exits_.emplace(*pid, loop_.watch_child(*pid, [this, child = *pid](int) { exits_.erase(child); }));
  guard.socket_watch = loop_.watch_readable(guard.socket.get(), [this] { on_socket(); });
  guard_ = std::move(guard);
  return {};
}

core::Result<void> FreezerProcess::send(const std::string& unit, FrozenShare share,
                                        DoneCallback done) {
  if (!freezer::is_group_path(unit))
    return core::fail(ErrorCode::invalid_input, "freeze", unit, "no path of a group");
  freezer::Buffer buffer{};
  const auto bytes = freezer::encode(freezer::Order{++sequence_, share, unit}, buffer);
  if (::send(guard_->socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0)
    return tl::unexpected(errno_error(errno, "give an order to", options_.program));
  asked_.push_back({sequence_, unit, share, std::move(done), loop_.now()});
  return {};
}

void FreezerProcess::on_socket() {
  while (guard_) {
    freezer::Buffer buffer{};
    const auto got = ::recv(guard_->socket.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    const auto bytes = std::span(buffer).first(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    const auto answer = freezer::decode_answer(bytes);
    if (got <= 0 || !answer || asked_.empty() || asked_.front().sequence != answer->sequence)
      return guard_lost();
    take_answer(*answer);
  }
}

void FreezerProcess::take_answer(const freezer::Answer& answer) {
  const auto asked = std::move(asked_.front());
  asked_.pop_front();
  if (answer.error != 0 && asked.share != kRuns) wanted_.erase(asked.unit);
  // With the end of the socket it ends by itself.
  if (wanted_.empty() && asked_.empty()) guard_.reset();
  if (asked.done) {
    if (answer.error == 0) return asked.done({});
    return asked.done(tl::unexpected(freezer_error(answer.error, "freeze", asked.unit)));
  }
  if (answer.error == 0 || !foreign_) return;
  const auto found = read(asked.unit);
  if (answer.error == EBUSY && found) foreign_(asked.unit, *found);
}

/// It has ended, or is not what we started: whatever it may have stopped is let run from here.
void FreezerProcess::guard_lost() {
  // Once it is reaped, its PID may be another's.
  if (exits_.contains(guard_->pid)) ::kill(guard_->pid, SIGKILL);
  guard_.reset();
  const auto now = loop_.now();
  losses_.push_back(now);
  while (now - losses_.front() > kLossesCountFor) losses_.pop_front();
  auto asked = std::exchange(asked_, {});
  for (const auto& [unit, share] : wanted_) let_run(unit, {});
  if (losses_.size() >= options_.max_losses) {
    why_not_ = "apusched-freezer ended " + std::to_string(losses_.size()) +
               " times within a minute; nothing is stopped until apuschedd is started again";
    wanted_.clear();
  }
  for (auto& one : asked) {
    if (one.share == kRuns)
      let_run(one.unit, one.done);
    else if (one.done)
      loop_.defer([one] {
        one.done(core::fail(ErrorCode::failed, "freeze", one.unit, "apusched-freezer has ended"));
      });
  }
}

void FreezerProcess::let_run(const std::string& unit, const DoneCallback& done) {
  const auto written = freezer::set_frozen(root_, unit, false);
  if (!done) return;
  core::Result<void> result;
  if (!written) result = tl::unexpected(freezer_error(written.error().value(), "let run", unit));
  loop_.defer([done, result] { done(result); });
}

void FreezerProcess::arm() {
  if (timer_) return;
  timer_ = loop_.after(freezer::kRenewal, [this] {
    const auto done = std::move(timer_);
    renew();
    if (!wanted_.empty() || !asked_.empty()) arm();
  });
}

/// A guard that was lost is replaced here, not at once.
void FreezerProcess::renew() {
  if (guard_ && !asked_.empty() && loop_.now() - asked_.front().at > options_.answer_deadline)
    guard_lost();
  if (wanted_.empty()) return;
  if (!guard_ && !start_guard()) return;
  for (const auto& [unit, share] : wanted_)
    if (!send(unit, share, {})) return;
}

}  // namespace apusched::platform
