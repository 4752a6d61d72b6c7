// SPDX-License-Identifier: MIT
#include "agent/agent.hpp"

#include <poll.h>
#include <sys/prctl.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "agent/levers.hpp"

namespace apusched::agent {
namespace {

constexpr Nanoseconds kFirstRetry = std::chrono::milliseconds{10};
constexpr Nanoseconds kLongestRetry = std::chrono::seconds{60};
constexpr Nanoseconds kAnswerTime = std::chrono::seconds{5};
constexpr std::size_t kStackBytes = 256 * 1024;
constexpr unsigned long kTimerSlackNs = 1000;
constexpr time_t kExitSeconds = 2;

bool is_due(Nanoseconds at, Nanoseconds now) {
  return at.count() != 0 && at <= now;
}

void earlier(Nanoseconds* earliest, Nanoseconds at) {
  if (at.count() != 0 && (earliest->count() == 0 || at < *earliest)) *earliest = at;
}

}  // namespace

Agent::Agent(Host& host, Environment environment, const agent_abi::Hello& hello, void (*at_exit)())
    : host_(host),
      environment_(std::move(environment)),
      hello_(hello),
      at_exit_(at_exit),
      reporter_(host),
      settings_(environment_.settings),
      random_(static_cast<std::uint64_t>(monotonic_now().count()) | 1) {}

bool Agent::start() noexcept {
  if (!host_.poke.open()) return false;
  host_.use(settings_);
  host_.attachment.begin(environment_.first_queue_wait);
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setstacksize(&attributes, kStackBytes);
  // The program's handlers never run on this thread.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread_, &attributes, enter, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error == 0) return true;
  host_.attachment.alone();
  return false;
}

bool Agent::stop(bool bounded) noexcept {
  stop_.store(true, std::memory_order_release);
  host_.poke.send();
  if (!bounded) {
    pthread_join(thread_, nullptr);
  } else {
    timespec deadline{};
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += kExitSeconds;
    if (pthread_timedjoin_np(thread_, nullptr, &deadline) != 0) return false;
  }
  link_.close();
  watch_.disarm();
  return true;
}

void Agent::leave_to_parent() noexcept {
  link_.leave_to_parent();
  watch_.leave_to_parent();
  host_.poke.leave_to_parent();
}

void* Agent::enter(void* self) noexcept {
  pthread_setname_np(pthread_self(), "apusched-agent");
  // 50 µs otherwise, which is more than what is measured here.
  prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
  static_cast<Agent*>(self)->run();
  return nullptr;
}

void Agent::run() noexcept {
  while (!stop_.load(std::memory_order_acquire)) {
    const Nanoseconds now = monotonic_now();
    wait(now, turn(now));
  }
  // Whoever waits for the daemon or at the gate must not wait for an agent that has ended.
  host_.attachment.alone();
  host_.gate.close_until(Nanoseconds{0});
}

// Everything that is due. Returns when the next thing is, 0: nothing is.
Nanoseconds Agent::turn(Nanoseconds now) noexcept {
  if (is_due(answer_until_, now)) {
    link_.close();
    retry_later(now, true);
  }
  if (is_due(connect_at_, now)) connect(now);
  if (has_work_ || is_due(queues_at_, now)) bring_queues(now);
  if (is_due(gate_at_, now)) bring_gate(now);
  if (is_due(sample_at_, now) || is_due(measure_at_, now)) look_at_queues(now);
  if (has_news_) report(now);
  Nanoseconds next{0};
  for (const Nanoseconds at :
       {connect_at_, answer_until_, queues_at_, gate_at_, sample_at_, measure_at_})
    earlier(&next, at);
  return next;
}

void Agent::wait(Nanoseconds now, Nanoseconds until) noexcept {
  pollfd files[] = {{.fd = host_.poke.descriptor(), .events = POLLIN, .revents = 0},
                    {.fd = link_.descriptor(), .events = POLLIN, .revents = 0},
                    {.fd = watch_.descriptor(), .events = POLLIN, .revents = 0}};
  timespec timeout{};
  if (until > now) {
    const std::int64_t left = (until - now).count();
    timeout = {.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
  }
  if (ppoll(files, std::size(files), until.count() == 0 ? nullptr : &timeout, nullptr) <= 0) return;
  if (files[0].revents != 0) {
    host_.poke.clear();
    has_work_ = has_news_ = true;
  }
  if (files[1].revents != 0) receive(monotonic_now());
  if (files[2].revents != 0 && watch_.has_news()) {
    retries_ = 0;
    connect_at_ = Nanoseconds{1};
  }
}

void Agent::connect(Nanoseconds now) noexcept {
  connect_at_ = Nanoseconds{0};
  // First the watch, so that a socket that appears in between is noticed.
  const bool watches = watch_.arm(environment_.socket);
  switch (link_.connect(environment_.socket, hello_)) {
    case Link::Event::greeted:
      watch_.disarm();
      answer_until_ = now + kAnswerTime;
      return;
    case Link::Event::absent:
      host_.attachment.alone();
      retries_ = 0;
      if (!watches) connect_at_ = now + kLongestRetry;
      return;
    default:
      // A socket that nobody listens on yet, or any more: its name tells no more.
      retry_later(now, false);
      return;
  }
}

// A daemon that answers and does not want us would do so again for every change in its directory.
void Agent::retry_later(Nanoseconds now, bool is_answering) noexcept {
  host_.attachment.alone();
  answer_until_ = Nanoseconds{0};
  if (is_answering) watch_.disarm();
  const std::uint32_t doublings = std::min(retries_++, 20U);
  const Nanoseconds first = is_answering ? kFirstRetry * 100 : kFirstRetry;
  connect_at_ = now + std::min(first * (1 << doublings), kLongestRetry);
}

void Agent::receive(Nanoseconds now) noexcept {
  switch (link_.receive()) {
    case Link::Event::welcomed:
      answer_until_ = Nanoseconds{0};
      read_page(now);
      return;
    case Link::Event::woken:
      read_page(now);
      return;
    case Link::Event::nothing:
      return;
    case Link::Event::refused:
      release(now);
      retry_later(now, true);
      return;
    default: {
      // One that ends is usually being started again.
      const bool was_welcome = link_.is_welcome();
      release(now);
      if (was_welcome) retries_ = 0;
      retry_later(now, !was_welcome);
      return;
    }
  }
}

void Agent::read_page(Nanoseconds now) noexcept {
  const auto page = read_control(link_.control());
  if (!page) return;  // being written: a Wake follows
  const auto settings = settings_from(*page);
  if (!settings) {
    release(now);
    retry_later(now, true);
    return;
  }
  sequence_ = page->sequence;
  use(*settings);
  bring_queues(now);
  bring_gate(now);
  report(now);
  if (!host_.attachment.is_attached()) {
    retries_ = 0;
    host_.attachment.attached();
    has_work_ = true;  // queues that were made in between told nobody
  }
}

void Agent::use(const Settings& settings) noexcept {
  const bool other_rate = settings.sample_hz != settings_.sample_hz;
  settings_ = settings;
  host_.use(settings_);
  has_work_ = has_news_ = true;
  if (settings_.sample_hz == 0) {
    sample_at_ = measure_at_ = Nanoseconds{0};
    reporter_.stop_measuring();
  } else if (other_rate) {
    sample_at_ = Nanoseconds{1};
  }
}

// The daemon has gone: back to what the program was started with.
void Agent::release(Nanoseconds now) noexcept {
  link_.close();
  host_.attachment.alone();
  // The next daemon counts anew.
  sequence_ = settled_ = 0;
  use(environment_.settings);
  gate_at_ = Nanoseconds{0};
  host_.gate.close_until(Nanoseconds{0});
  bring_queues(now);
}

void Agent::bring_queues(Nanoseconds now) noexcept {
  has_work_ = false;
  queues_at_ = Nanoseconds{0};
  bool is_settled = true;
  host_.queues.list(&handles_);
  for (hsa_queue_t* queue : handles_) {
    host_.queues.hold(queue, [&](const QueueFacts& facts, QueueLevers& levers) {
      const Nanoseconds again = bring_to(settings_, host_.runtime, now, facts, levers);
      earlier(&queues_at_, again);
      if (again.count() != 0 && levers.failures == 0) is_settled = false;
    });
  }
  if (!handles_.empty() && settings_.priority != agent_abi::Priority::leave &&
      at_exit_ != nullptr && std::atexit(at_exit_) == 0)
    at_exit_ = nullptr;
  if (is_settled) settled_ = sequence_;
  has_news_ = true;
}

void Agent::bring_gate(Nanoseconds now) noexcept {
  const auto verdict = gate_policy_.decide(now, settings_.gate_closed_until);
  gate_at_ = verdict.look_again;
  host_.gate.close_until(verdict.closed_until);
}

void Agent::look_at_queues(Nanoseconds now) noexcept {
  if (is_due(sample_at_, now) && settings_.sample_hz != 0) {
    reporter_.sample(now);
    // Half to one and a half periods: a steady beat would see a workload with a beat of its own
    // always at the same place.
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    const std::int64_t period = 1'000'000'000 / settings_.sample_hz;
    sample_at_ = now + Nanoseconds{period / 2 + static_cast<std::int64_t>(
                                                    random_ % static_cast<std::uint64_t>(period))};
    has_news_ = true;
  }
  measure_at_ = reporter_.is_measuring() ? reporter_.measure(now) : Nanoseconds{0};
}

void Agent::report(Nanoseconds now) noexcept {
  has_news_ = false;
  if (link_.is_welcome()) reporter_.write(link_.telemetry(), settings_, settled_, now);
}

}  // namespace apusched::agent
