// SPDX-License-Identifier: MIT
#include "queue/engine.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstdlib>
#include <utility>

namespace apusched::softapu {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t kNotRung = ~std::uint64_t{0};
constexpr microseconds kDefaultSpin{30};
// How early to wake for the end of a kernel; a timer wakes about so late on a busy machine.
constexpr microseconds kEndSpin{50};
constexpr microseconds kFirstBackoff{20};
// About what a client needs to store to a doorbell once it may, and the engine to wake up for it.
constexpr microseconds kLanding{50};
// Most stores have landed by the time at which the engine may look.
constexpr microseconds kLandingSpin{10};
constexpr milliseconds kLastBackoff{1};
constexpr milliseconds kLandingPatience{100};
// Without userfaultfd: 2000 looks per second.
constexpr microseconds kPollNap{500};

Nanoseconds spin_from_environment() {
  const char* text = std::getenv("SOFTAPU_SPIN_US");
  if (text == nullptr) return kDefaultSpin;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < 0 || value > 100'000) return kDefaultSpin;
  return microseconds{value};
}

void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

class Engine::Queue final : public Executor {
 public:
  Queue(SharedDevice& device, QueueIndex index, std::uint64_t* doorbell,
        const PacketProcessor::Ring& ring, SignalPort& signals, const KernelPort& kernels,
        const WorkCallback& on_work)
      : device_(device),
        index_(index),
        on_work_(on_work),
        doorbell_(*doorbell),
        processor_(ring, device.unlocked().description.max_in_flight_per_queue, *this, signals,
                   kernels, device.unlocked().queues[static_cast<std::uint32_t>(index)].counters) {
    doorbell_.store(kNotRung, std::memory_order_release);
  }

  std::optional<RunIndex> launch(const KernelCost& cost) override {
    std::optional<RunIndex> run;
    bool rested = false;
    {
      SharedDevice::Access access(device_);
      if (lost(access)) return std::nullopt;
      run = access->launch(index_, cost, access.now());
      rested = std::exchange(access.state().readings_rest, 0) != 0;
    }
    if (rested) on_work_();
    return run;
  }
  std::optional<RunTimes> collect(RunIndex run) override {
    SharedDevice::Access access(device_);
    // A reset gave its slot away, maybe to another client.
    if (lost(access)) return std::nullopt;
    return access->collect(run);
  }

  [[nodiscard]] QueueIndex index() const { return index_; }
  [[nodiscard]] bool rung() const { return doorbell_.load(std::memory_order_acquire) != kNotRung; }
  // True when the doorbell had been rung.
  bool take_doorbell() {
    return rung() && doorbell_.exchange(kNotRung, std::memory_order_acq_rel) != kNotRung;
  }
  PacketProcessor& processor() { return processor_; }
  [[nodiscard]] bool halted() {
    if (!device_.unlocked().faults.may_halt()) return false;
    SharedDevice::Access access(device_);
    return access->halted(index_);
  }

 private:
  bool lost(SharedDevice::Access& access) const {
    const auto& queue = access.state().queues[static_cast<std::uint32_t>(index_)];
    return access->lost(ClientIndex{queue.client});
  }

  SharedDevice& device_;
  QueueIndex index_;
  const WorkCallback& on_work_;
  std::atomic_ref<std::uint64_t> doorbell_;
  PacketProcessor processor_;
};

Engine::Engine(SharedDevice& device, ClientIndex client, EventTable& events,
               std::uint64_t* doorbells, std::uint32_t first_id, WorkCallback on_work)
    : device_(device),
      client_(client),
      doorbells_(doorbells),
      events_(events),
      signals_(events),
      kernels_(device.unlocked().description),
      on_work_(std::move(on_work)),
      next_id_(first_id),
      backoff_(kFirstBackoff),
      spin_(spin_from_environment()) {
  std::fill_n(doorbells_, kDoorbells, kNotRung);
  // The client's signal handlers have no business on these threads.
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  thread_ = std::thread([this] { run(); });
  waker_ = std::thread([this] { pass_wakes_on(); });
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

Engine::~Engine() {
  stop_ = true;
  look_again();
  futex_wake_all(client().wake);
  thread_.join();
  waker_.join();
}

Client& Engine::client() {
  return device_.unlocked().clients[static_cast<std::uint32_t>(client_)];
}

void Engine::look_again() {
  client().wake.fetch_add(1);
  if (client().sleeping.load() != 0) watch_.wake();
}

// Other processes can only wake a futex, and the engine cannot wait for that and for doorbells.
// What this process itself wants takes the short way, look_again().
void Engine::pass_wakes_on() {
  pthread_setname_np(pthread_self(), "softapu-wake");
  for (;;) {
    const std::uint32_t seen = client().wake.load();
    if (stop_) return;
    if (client().sleeping.load() != 0) watch_.wake();
    futex_wait(client().wake, seen, Nanoseconds::max());
  }
}

std::unique_lock<std::mutex> Engine::control() {
  waiting_++;
  std::unique_lock lock(mutex_);
  waiting_--;
  return lock;
}

void Engine::watch_doorbells(void* address, std::size_t bytes) {
  watch_.add(address, bytes);
  look_again();
}

std::optional<CreatedQueue> Engine::create_queue(const QueueRequest& request) {
  if (!std::has_single_bit(request.ring_bytes) || request.ring_bytes < kPacketBytes ||
      request.ring_address == 0 || request.read_pointer_address == 0)
    return std::nullopt;
  const auto lock = control();
  if (queues_.size() >= kDoorbells) return std::nullopt;
  // The doorbell's index is the id modulo the pages; skip ids whose doorbell is still in use.
  const auto taken = [&](std::uint32_t id) {
    return std::any_of(queues_.begin(), queues_.end(),
                       [&](const auto& q) { return q.first % kDoorbells == id % kDoorbells; });
  };
  while (taken(next_id_)) next_id_++;
  const std::uint32_t id = next_id_++;
  const std::uint32_t doorbell = id % kDoorbells;
  std::optional<QueueIndex> index;
  {
    SharedDevice::Access access(device_);
    index = access->add_queue(client_, {id, request.ring_bytes, request.priority, request.percent},
                              access.now());
  }
  if (!index) return std::nullopt;
  PacketProcessor::Ring ring;
  ring.base = reinterpret_cast<std::byte*>(request.ring_address);  // NOLINT: from an ioctl
  ring.packets = request.ring_bytes / kPacketBytes;
  ring.queue = reinterpret_cast<amd_queue_t*>(  // NOLINT: as above
      request.read_pointer_address - offsetof(amd_queue_t, read_dispatch_id));
  queues_[id] = std::make_unique<Queue>(device_, *index, &doorbells_[doorbell], ring, signals_,
                                        kernels_, on_work_);
  return CreatedQueue{id, doorbell, *index};
}

bool Engine::update_queue(std::uint32_t id, std::uint32_t percent, std::int32_t priority) {
  const auto lock = control();
  const auto it = queues_.find(id);
  if (it == queues_.end()) return false;
  SharedDevice::Access access(device_);
  access->set_priority(it->second->index(), priority, percent, access.now());
  return true;
}

bool Engine::set_mask(std::uint32_t id, const CuMask& mask) {
  const auto lock = control();
  const auto it = queues_.find(id);
  if (it == queues_.end()) return false;
  SharedDevice::Access access(device_);
  access->set_mask(it->second->index(), mask, access.now());
  return true;
}

std::optional<QueueIndex> Engine::destroy_queue(std::uint32_t id) {
  const auto lock = control();
  const auto it = queues_.find(id);
  if (it == queues_.end()) return std::nullopt;
  const QueueIndex index = it->second->index();
  queues_.erase(it);
  SharedDevice::Access access(device_);
  access->remove_queue(index, access.now());
  return index;
}

bool Engine::doorbell_waiting() {
  const std::lock_guard lock(mutex_);
  return std::any_of(queues_.begin(), queues_.end(),
                     [](const auto& entry) { return entry.second->rung(); });
}

// After a reset or a removal: nothing of this process runs any more. The kernel tells of resets
// only.
void Engine::notice_loss() {
  if (lost_ || client().losses == device_.unlocked().faults.losses.load()) return;
  lost_ = true;
  for (auto& [id, queue] : queues_) queue->processor().abandon();
  if (!device_.unlocked().faults.has(Fault::gone)) events_.raise(EventTable::kHwException);
}

bool Engine::step(Plan& plan) {
  const std::lock_guard lock(mutex_);
  notice_loss();
  bool progressed = false;
  for (auto& [id, queue] : queues_) {
    if (queue->take_doorbell()) {
      landing_ = false;
      if (queue->processor().ring_doorbell()) note_ring();
    }
    if (!queue->halted()) progressed |= queue->processor().step(monotonic_now());
  }
  if (progressed) return true;
  const bool busy = std::any_of(queues_.begin(), queues_.end(),
                                [](const auto& q) { return q.second->processor().in_flight(); });
  std::optional<SharedDevice::Access> access;
  if (busy) access.emplace(device_);
  for (auto& [id, queue] : queues_) {
    plan.waits_for_signal |= queue->processor().waits_for_signal();
    queue->processor().for_each_run([&](RunIndex run) {
      if (const auto end = (*access)->expected_end(run))
        plan.next_end = std::min(plan.next_end, *end);
    });
  }
  return false;
}

// Spinning pays while the next doorbell comes soon after the work before it has ended.
void Engine::note_ring() {
  spin_pays_ = monotonic_now() - progressed_ < spin_ + kLanding;
}

// Stores that wait in the kernel: they go ahead.
void Engine::on_faults(std::size_t count) {
  client().doorbell_faults += count;
  watch_.disarm();
  landing_ = true;
  landing_since_ = monotonic_now();
  backoff_ = kFirstBackoff;
  spin_until_ = landing_since_ + std::min<Nanoseconds>(spin_, kLandingSpin);
}

Nanoseconds Engine::poll_deadline(const Plan& plan, Nanoseconds now) {
  if (!landing_ && !plan.waits_for_signal) return Nanoseconds::max();
  backoff_ = std::min<Nanoseconds>(backoff_ * 2, kLastBackoff);
  return now + backoff_;
}

void Engine::sleep(const Plan& plan, std::uint32_t seen) {
  Client& me = client();
  const Nanoseconds now = monotonic_now();
  const Nanoseconds early =
      plan.next_end == Nanoseconds::max() ? plan.next_end : plan.next_end - kEndSpin;
  if (early <= now) return cpu_relax();
  // See queue/doorbell_watch.h.
  if (landing_ && now - landing_since_ > kLandingPatience) landing_ = false;
  Nanoseconds deadline = std::min(early, poll_deadline(plan, now));
  const bool armed = !landing_ && watch_.arm();
  if (!armed && !landing_) deadline = std::min<Nanoseconds>(deadline, now + kPollNap);
  if (armed && doorbell_waiting()) return watch_.disarm();
  std::size_t faults = 0;
  me.sleeping.store(1);
  if (me.wake.load() == seen)
    faults = watch_.wait(deadline == Nanoseconds::max() ? deadline : deadline - now);
  me.sleeping.store(0);
  me.wakeups.fetch_add(1, std::memory_order_relaxed);
  if (faults > 0)
    on_faults(faults);
  else if (armed)
    watch_.disarm();
}

void Engine::run() {
  pthread_setname_np(pthread_self(), "softapu-engine");
  prctl(PR_SET_TIMERSLACK, 1);
  while (!stop_) {
    if (waiting_.load() != 0) std::this_thread::yield();
    const std::uint32_t seen = client().wake.load();
    Plan plan;
    if (step(plan)) {
      progressed_ = monotonic_now();
      spin_until_ = spin_pays_ ? progressed_ + spin_ : progressed_;
      if (!landing_) backoff_ = kFirstBackoff;
    } else if (monotonic_now() < spin_until_) {
      cpu_relax();
    } else {
      sleep(plan, seen);
    }
  }
}

}  // namespace apusched::softapu
