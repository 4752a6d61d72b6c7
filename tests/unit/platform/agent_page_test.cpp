// SPDX-License-Identifier: MIT
#include "platform/agent_page.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

namespace apusched::platform {
namespace {

using namespace std::chrono_literals;
using Verdict = ReportChecker::Verdict;

const core::ProcessKey kProcess{*core::Pid::make(42), {7}};

agent_abi::Hello hello() {
  agent_abi::Hello hello{};
  hello.magic = agent_abi::kMagic;
  hello.version = agent_abi::kVersion;
  hello.size = sizeof hello;
  hello.features = agent_abi::kFeatureMask | agent_abi::kFeatureGate;
  hello.gpu_count = 1;
  hello.gpus[0] = {0, 0x0400, 12, "gfx1035"};
  return hello;
}

core::Result<core::AgentFacts> parsed(const agent_abi::Hello& greeting) {
  return parse_hello(std::as_bytes(std::span(&greeting, 1)), kProcess);
}

agent_abi::Telemetry telemetry(std::uint32_t sequence) {
  agent_abi::Telemetry t{};
  t.magic = agent_abi::kMagic;
  t.version = agent_abi::kVersion;
  t.size = sizeof t;
  t.sequence = sequence;
  t.control_sequence = 2;
  t.queue_count = 1;
  t.submitted = 100;
  t.taken = 90;
  t.samples = 20;
  t.busy_samples = 10;
  t.wait_count = 3;
  t.next_wait = 3;
  t.waits_ns[0] = 1000;
  t.waits_ns[1] = 2000;
  t.waits_ns[2] = 3000;
  return t;
}

TEST(Hello, tells_what_the_agent_can_do_and_on_which_gpus) {
  const auto facts = parsed(hello());
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->process, kProcess);
  EXPECT_TRUE(facts->can_mask);
  EXPECT_FALSE(facts->can_serialise);
  ASSERT_EQ(facts->gpus.size(), 1U);
  EXPECT_EQ(facts->gpus.front().pci.text(), "0000:04:00.0");
  EXPECT_EQ(facts->gpus.front().isa, "gfx1035");
}

TEST(Hello, of_another_version_is_told_from_nonsense) {
  auto newer = hello();
  newer.version = 99;
  EXPECT_EQ(parsed(newer).error().code, core::ErrorCode::unsupported);
  auto nonsense = hello();
  nonsense.magic = 1;
  EXPECT_EQ(parsed(nonsense).error().code, core::ErrorCode::invalid_input);
}

TEST(Hello, with_counts_sizes_and_addresses_that_cannot_be_is_refused) {
  auto many = hello();
  many.gpu_count = agent_abi::kMaxGpus + 1;
  EXPECT_FALSE(parsed(many));
  auto size = hello();
  size.size = 4;
  EXPECT_FALSE(parsed(size));
  auto domain = hello();
  domain.gpus[0].pci_domain = 0x10000;
  EXPECT_FALSE(parsed(domain));
  const auto whole = hello();
  const auto bytes = std::as_bytes(std::span(&whole, 1));
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(parse_hello(bytes.first(length), kProcess)) << length;
}

TEST(Hello, cannot_put_control_characters_on_a_terminal) {
  auto nasty = hello();
  std::memcpy(nasty.gpus[0].isa, "\x1b[2Jgfx", 8);
  EXPECT_EQ(parsed(nasty)->gpus.front().isa, "??2Jgfx");
}

TEST(Control, has_whole_words_of_mask_and_only_for_gpus_that_were_named) {
  core::AgentSettings settings;
  settings.priority = core::QueuePriority::high;
  settings.memory_limit = core::MebiBytes::of<3>();
  settings.masks.emplace(*core::PciAddress::parse("0000:04:00.0"), core::CuMask::first(4));
  settings.masks.emplace(*core::PciAddress::parse("0000:05:00.0"), core::CuMask::first(4));
  const auto control = to_control(settings, parsed(hello())->gpus);
  EXPECT_EQ(control.gpus[0].mask_bits, 32U);
  EXPECT_EQ(control.gpus[0].mask[0], 0xfU);
  EXPECT_EQ(control.gpus[1].mask_bits, 0U);
  EXPECT_EQ(control.priority, static_cast<std::uint32_t>(agent_abi::Priority::high));
  EXPECT_EQ(control.memory_limit_bytes, 3U << 20U);
}

TEST(Control, is_read_whole_or_not_at_all) {
  agent_abi::Control page{};
  agent_abi::Control ones{};
  std::memset(&ones, 0x11, sizeof ones);
  publish(page, ones, 2);
  EXPECT_EQ(page.sequence, 2U);
  EXPECT_EQ(page.queue_limit, ones.queue_limit);
  EXPECT_EQ(page.gpus[agent_abi::kMaxGpus - 1].mask[0], 0x11111111U);
}

TEST(Snapshot, does_not_wait_for_a_page_that_is_being_written_for_ever) {
  const auto page = telemetry(5);
  EXPECT_FALSE(snapshot(page));
}

TEST(Snapshot, is_never_torn) {
  auto page = telemetry(2);
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (std::uint32_t n = 4; !stop; n += 2) {
      __atomic_store_n(&page.sequence, n - 1, __ATOMIC_RELAXED);
      // Both halves of each: words of four bytes are what is shared.
      for (auto* field : {&page.submitted, &page.taken}) {
        auto* words = reinterpret_cast<std::uint32_t*>(field);
        __atomic_store_n(words, n, __ATOMIC_RELEASE);
        __atomic_store_n(words + 1, 0U, __ATOMIC_RELEASE);
      }
      __atomic_store_n(&page.sequence, n, __ATOMIC_RELEASE);
    }
  });
  int seen = 0;
  // The limit is against hanging: on a busy machine the writer may get its CPU late.
  const auto limit = std::chrono::steady_clock::now() + 60s;
  while (seen < 1000 && std::chrono::steady_clock::now() < limit) {
    const auto copy = snapshot(page);
    if (!copy || copy->sequence == 2) {
      std::this_thread::yield();
      continue;
    }
    ++seen;
    EXPECT_EQ(copy->submitted, copy->sequence);
    EXPECT_EQ(copy->taken, copy->sequence);
  }
  stop = true;
  writer.join();
  EXPECT_EQ(seen, 1000);
}

TEST(Reports, that_make_sense_are_taken) {
  ReportChecker checker(1);
  EXPECT_EQ(checker.check(telemetry(2), 2), Verdict::good);
  ASSERT_TRUE(checker.report());
  EXPECT_EQ(checker.report()->submitted, 100U);
  EXPECT_EQ(checker.report()->waits, (std::vector<std::chrono::nanoseconds>{1us, 2us, 3us}));
  EXPECT_EQ(checker.report()->masks.size(), 1U);
  EXPECT_EQ(checker.check(telemetry(2), 2), Verdict::unchanged);
}

TEST(Reports, of_an_empty_page_are_none_yet) {
  ReportChecker checker(1);
  EXPECT_EQ(checker.check(agent_abi::Telemetry{}, 2), Verdict::unchanged);
  EXPECT_FALSE(checker.report());
}

TEST(Reports, have_only_the_waits_that_are_new) {
  ReportChecker checker(0);
  ASSERT_EQ(checker.check(telemetry(2), 2), Verdict::good);
  auto next = telemetry(4);
  next.waits_ns[3] = 4000;
  next.wait_count = 4;
  next.next_wait = 4;
  ASSERT_EQ(checker.check(next, 2), Verdict::good);
  EXPECT_EQ(checker.report()->waits, (std::vector<std::chrono::nanoseconds>{4us}));
}

TEST(Reports, that_cannot_be_true_are_refused_and_the_last_good_one_stays) {
  const std::vector<void (*)(agent_abi::Telemetry&)> lies{
      [](agent_abi::Telemetry& t) { t.magic = 0; },
      [](agent_abi::Telemetry& t) { t.size = 1; },
      [](agent_abi::Telemetry& t) { t.version = 2; },
      [](agent_abi::Telemetry& t) { t.queue_count = 0xffffffff; },
      [](agent_abi::Telemetry& t) { t.reported_queues = agent_abi::kMaxQueues + 1; },
      [](agent_abi::Telemetry& t) { t.next_wait = agent_abi::kWaits; },
      [](agent_abi::Telemetry& t) { t.taken = t.submitted + 1; },
      [](agent_abi::Telemetry& t) { t.busy_samples = t.samples + 1; },
      [](agent_abi::Telemetry& t) { t.memory_bytes = ~std::uint64_t{0}; },
      [](agent_abi::Telemetry& t) { t.control_sequence = 1000; },
      [](agent_abi::Telemetry& t) { t.priority.applied = 17; },
      [](agent_abi::Telemetry& t) { t.mask[7].applied = 17; },
      [](agent_abi::Telemetry& t) { t.submitted = 99, t.taken = 0; },
      [](agent_abi::Telemetry& t) { t.wait_count = 0; },
      [](agent_abi::Telemetry& t) {
        t.wait_count = 4, t.next_wait = 4, t.waits_ns[3] = ~std::uint64_t{0};
      }};
  for (std::size_t i = 0; i < lies.size(); ++i) {
    ReportChecker checker(1);
    ASSERT_EQ(checker.check(telemetry(2), 2), Verdict::good);
    auto lie = telemetry(4);
    lies[i](lie);
    EXPECT_EQ(checker.check(lie, 2), Verdict::senseless) << i;
    EXPECT_EQ(checker.report()->submitted, 100U) << i;
  }
}

}  // namespace
}  // namespace apusched::platform
