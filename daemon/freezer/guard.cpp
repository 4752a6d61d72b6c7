// SPDX-License-Identifier: MIT
#include "freezer/guard.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "freezer/group_file.hpp"

namespace apusched::freezer {
namespace {

constexpr std::size_t kMostUnits = 256;
/// Where nothing is held there is nothing to do but to wait for an order.
constexpr int kForEver = -1;

Moment now() {
  return std::chrono::duration_cast<Moment>(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace

bool Guard::run(int stop_fd) {
  while (wait(stop_fd)) turn();
  let_all_run();
  return good_;
}

bool Guard::wait(int stop_fd) {
  std::array<pollfd, 2> fds{{{socket_.get(), POLLIN, 0}, {stop_fd, POLLIN, 0}}};
  const auto next = cycles_.next();
  const auto left = next ? static_cast<int>(std::max(*next - now(), Moment{0}).count()) : kForEver;
  if (::poll(fds.data(), fds.size(), left) < 0) {
    good_ = errno == EINTR;
    return good_;
  }
  if (fds[1].revents != 0) return false;
  return fds[0].revents == 0 || take_order();
}

bool Guard::take_order() {
  Buffer buffer{};
  const auto got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got <= 0) return false;
  const auto order = decode_order(std::span(buffer).first(static_cast<std::size_t>(got)));
  if (!order) {
    std::fprintf(stderr, "apusched-freezer: %s\n", core::to_sentence(order.error()).c_str());
    good_ = false;
    return false;
  }
  const auto answer = encode(Answer{order->sequence, obey(*order)}, buffer);
  // A daemon that reads no answers is one that does not work: its lease will end.
  static_cast<void>(
      ::send(socket_.get(), answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
  return true;
}

int Guard::obey(const Order& order) {
  if (const auto lost = lost_.find(order.path); lost != lost_.end()) {
    const int why = lost->second;
    if (order.share.value() == 0) lost_.erase(lost);
    return why;
  }
  if (order.share.value() == 0) {
    cycles_.set(order.path, order.share, now());
    turn();
    const auto lost = lost_.extract(order.path);
    return lost.empty() ? 0 : lost.mapped();
  }
  if (!cycles_.holds(order.path)) {
    if (lost_.size() + cycles_.size() >= kMostUnits) return ENOSPC;
    const auto frozen = is_frozen(root_, order.path);
    if (!frozen) return frozen.error().value();
    if (*frozen) return EBUSY;
    // Changes nothing, and tells at once whether it could be changed.
    if (const auto may = set_frozen(root_, order.path, false); !may) return may.error().value();
  }
  cycles_.set(order.path, order.share, now());
  return 0;
}

void Guard::turn() {
  for (const auto& step : cycles_.due(now())) {
    const int error = change(step);
    if (error == 0) continue;
    cycles_.forget(step.path);
    lost_.insert_or_assign(step.path, error);
  }
}

int Guard::change(const DutyCycles::Step& step) const {
  const auto found = is_frozen(root_, step.path);
  if (!found) return found.error().value();
  if (*found == step.freeze) return EBUSY;
  const auto done = set_frozen(root_, step.path, step.freeze);
  return done ? 0 : done.error().value();
}

void Guard::let_all_run() {
  for (const auto& path : cycles_.frozen()) static_cast<void>(set_frozen(root_, path, false));
}

}  // namespace apusched::freezer
