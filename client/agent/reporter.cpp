// SPDX-License-Identifier: MIT
#include "agent/reporter.hpp"

#include <algorithm>

#include "agent/levers.hpp"
#include "agent/pages.hpp"

namespace apusched::agent {

using agent_abi::Applied;
using agent_abi::Setting;
using agent_abi::Telemetry;

namespace {

// Longer waits are noted as this: what a controller wants to know of them is that they were long.
constexpr Nanoseconds kLongestWait = std::chrono::milliseconds{20};
constexpr Nanoseconds kFirstLook = std::chrono::microseconds{20};
constexpr int kResolution = 8;  // a wait is known to an eighth of it

std::uint64_t backlog_of(const Indices& indices) {
  return indices.written - indices.taken;
}

Setting as_setting(Applied applied) {
  return {static_cast<std::uint32_t>(applied), 0};
}

}  // namespace

void Reporter::sample(Nanoseconds now) noexcept {
  host_.queues.look(host_.runtime, &views_);
  std::uint64_t backlog = 0;
  const QueueView* longest = nullptr;
  for (const QueueView& view : views_) {
    const std::uint64_t here = backlog_of(view.indices);
    backlog += here;
    if (here > 0 && (longest == nullptr || here > backlog_of(longest->indices))) longest = &view;
  }
  samples_++;
  if (longest == nullptr) return;
  busy_samples_++;
  backlog_sum_ += backlog;
  if (is_measuring()) return;
  measured_ = {longest->facts.handle, longest->facts.id, longest->indices.written, now};
}

Nanoseconds Reporter::measure(Nanoseconds now) noexcept {
  const auto indices = host_.queues.look(host_.runtime, measured_.queue, measured_.id);
  const Nanoseconds wait = now - measured_.since;
  if (indices && indices->taken < measured_.until_taken && wait < kLongestWait)
    return now + std::max(kFirstLook, wait / kResolution);
  // A queue that was destroyed meanwhile tells nothing.
  if (indices) note_wait(std::min(wait, kLongestWait));
  stop_measuring();
  return Nanoseconds{0};
}

void Reporter::note_wait(Nanoseconds wait) noexcept {
  telemetry_.waits_ns[wait_count_ % agent_abi::kWaits] = static_cast<std::uint64_t>(wait.count());
  wait_count_++;
}

void Reporter::add_queue(const QueueView& queue) noexcept {
  const QueueFacts& facts = queue.facts;
  telemetry_.queue_count++;
  telemetry_.submitted += queue.indices.written;
  telemetry_.taken += queue.indices.taken;
  const bool is_serial = facts.serial && host_.serial.load(std::memory_order_relaxed);
  if (!facts.left_alone) {
    Setting& mask = telemetry_.mask[facts.gpu];
    mask = worse(mask, queue.levers.mask);
    telemetry_.priority = worse(telemetry_.priority, queue.levers.priority);
    if (host_.serial.load(std::memory_order_relaxed))
      telemetry_.serial = worse(telemetry_.serial,
                                as_setting(facts.serial ? Applied::applied : Applied::unsupported));
  }
  if (telemetry_.reported_queues == agent_abi::kMaxQueues) return;
  agent_abi::QueueReport& report = telemetry_.queues[telemetry_.reported_queues++];
  report = {.id = facts.id,
            .submitted = queue.indices.written,
            .taken = queue.indices.taken,
            .gpu = static_cast<std::uint32_t>(facts.gpu),
            .flags = flags_of(facts, queue.levers) | (is_serial ? agent_abi::kQueueSerial : 0U)};
}

// What this runtime cannot do at all is said before there is a queue.
void Reporter::add_settings(const Settings& settings) noexcept {
  const std::uint32_t features = features_of(host_.runtime);
  if (settings.priority != agent_abi::Priority::leave &&
      (features & agent_abi::kFeaturePriority) == 0)
    telemetry_.priority = as_setting(Applied::unsupported);
  if (settings.serial && (features & agent_abi::kFeatureSerial) == 0)
    telemetry_.serial = as_setting(Applied::unsupported);
}

void Reporter::write(void* page, const Settings& settings, std::uint32_t settled,
                     Nanoseconds now) noexcept {
  const Indices destroyed = host_.queues.look(host_.runtime, &views_);
  Telemetry& t = telemetry_;
  t.magic = agent_abi::kMagic;
  t.version = agent_abi::kVersion;
  t.size = sizeof t;
  t.sequence += 2;
  t.written_ns = static_cast<std::uint64_t>(now.count());
  t.control_sequence = settled;
  t.queue_count = t.reported_queues = 0;
  t.next_wait = static_cast<std::uint32_t>(wait_count_ % agent_abi::kWaits);
  std::fill(std::begin(t.mask), std::end(t.mask), Setting{});
  t.priority = t.serial = Setting{};
  t.submitted = destroyed.written;
  t.taken = destroyed.taken;
  for (const QueueView& view : views_) add_queue(view);
  add_settings(settings);
  t.memory_bytes = host_.memory.used();
  t.refused_queues = host_.queues.refused();
  t.refused_allocations = host_.memory.refused();
  t.gate_waits = host_.gate.waits();
  t.gate_wait_ns = static_cast<std::uint64_t>(host_.gate.waited().count());
  t.samples = samples_;
  t.busy_samples = busy_samples_;
  t.backlog_sum = backlog_sum_;
  t.wait_count = wait_count_;
  const std::size_t used =
      offsetof(Telemetry, queues) + t.reported_queues * sizeof(agent_abi::QueueReport);
  write_telemetry(page, t, used);
}

}  // namespace apusched::agent
