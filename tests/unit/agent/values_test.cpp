// SPDX-License-Identifier: MIT
// Settings, pages, the book of memory and the handler of serial queues.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "agent/memory_book.hpp"
#include "agent/pages.hpp"
#include "agent/serial.hpp"
#include "agent/settings.hpp"
#include "doubles/fake_agent_daemon.hpp"

namespace apusched::agent {
namespace {

agent_abi::Control page() {
  agent_abi::Control control{};
  control.magic = agent_abi::kMagic;
  control.version = agent_abi::kVersion;
  control.size = sizeof control;
  return control;
}

TEST(ControlPage, is_taken_where_all_is_in_range) {
  auto control = page();
  control.priority = 1;
  control.serial = 1;
  control.sample_hz = agent_abi::kMaxSampleHz;
  control.gpus[1].mask_bits = 64;
  control.gpus[1].mask[1] = 0xF;
  const auto settings = settings_from(control);
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->priority, agent_abi::Priority::low);
  EXPECT_TRUE(settings->serial);
  EXPECT_EQ(settings->masks[1].words[1], 0xFU);
}

TEST(ControlPage, is_refused_where_a_field_is_not) {
  for (const auto& spoil : std::vector<void (*)(agent_abi::Control&)>{
           [](auto& c) { c.magic++; }, [](auto& c) { c.version++; }, [](auto& c) { c.size--; },
           [](auto& c) { c.priority = 4; }, [](auto& c) { c.serial = 2; },
           [](auto& c) { c.sample_hz = agent_abi::kMaxSampleHz + 1; },
           [](auto& c) { c.gpus[7].mask_bits = 33; },
           [](auto& c) { c.gpus[0].mask_bits = 1056; }}) {
    auto control = page();
    spoil(control);
    EXPECT_FALSE(settings_from(control));
  }
}

TEST(ControlPage, garbage_is_refused_or_in_range) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; i++) {
    auto control = page();
    auto* words = reinterpret_cast<std::uint32_t*>(&control);
    for (int n = 0; n < 4; n++)
      words[4 + random() % (sizeof control / 4 - 4)] = static_cast<std::uint32_t>(random());
    const auto settings = settings_from(control);
    if (!settings) continue;
    for (const CuMask& mask : settings->masks) EXPECT_LE(mask.bits, 1024U);
    EXPECT_GE(settings->gate_closed_until.count(), 0);
  }
}

TEST(Environment, what_is_no_number_in_range_counts_as_not_set) {
  setenv("APUSCHED_AGENT_WAIT_MS", "1001", 1);
  setenv("APUSCHED_SERIAL", "yes", 1);
  setenv("APUSCHED_QUEUE_LIMIT", "-1", 1);
  setenv("APUSCHED_MEMORY_LIMIT_MIB", "18446744073709551615", 1);
  setenv("APUSCHED_AGENT_SOCKET", "relative", 1);
  const Environment environment = read_environment();
  EXPECT_EQ(environment.first_queue_wait.count(), 100);
  EXPECT_FALSE(environment.settings.serial);
  EXPECT_EQ(environment.settings.queue_limit, 0U);
  EXPECT_EQ(environment.settings.memory_limit_bytes, 0U);
  EXPECT_EQ(environment.socket, agent_abi::kDefaultSocket);
}

TEST(Environment, is_used_where_it_is) {
  setenv("APUSCHED_AGENT_WAIT_MS", "0", 1);
  setenv("APUSCHED_SERIAL", "1", 1);
  setenv("APUSCHED_QUEUE_LIMIT", "3", 1);
  setenv("APUSCHED_MEMORY_LIMIT_MIB", "5", 1);
  setenv("APUSCHED_AGENT_SOCKET", "/run/other.sock", 1);
  const Environment environment = read_environment();
  EXPECT_EQ(environment.first_queue_wait.count(), 0);
  EXPECT_TRUE(environment.settings.serial);
  EXPECT_EQ(environment.settings.queue_limit, 3U);
  EXPECT_EQ(environment.settings.memory_limit_bytes, 5U << 20);
  EXPECT_EQ(environment.socket, "/run/other.sock");
}

TEST(Pages, one_that_could_shrink_is_not_mapped) {
  SharedPage shared;
  const int unsealed = fake::make_page({4096, F_SEAL_GROW});
  EXPECT_FALSE(shared.map(unsealed, 1104, false));
  close(unsealed);
}

TEST(Pages, one_that_is_too_short_or_absurdly_long_is_not_mapped) {
  SharedPage shared;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1103}, std::size_t{1} << 30}) {
    const int fd = fake::make_page({bytes});
    EXPECT_FALSE(shared.map(fd, 1104, false));
    close(fd);
  }
}

TEST(Pages, what_is_no_memfd_is_not_mapped) {
  SharedPage shared;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_FALSE(shared.map(ends[0], 1, false));
  EXPECT_FALSE(shared.map(-1, 1, false));
  close(ends[0]);
  close(ends[1]);
}

TEST(Pages, one_sealed_against_writing_is_no_telemetry_page) {
  SharedPage shared;
  const int fd = fake::make_page({4816, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE});
  EXPECT_FALSE(shared.map(fd, 4816, true));
  EXPECT_TRUE(shared.map(fd, 4816, false));
  close(fd);
}

TEST(Pages, a_writer_that_never_gets_done_is_not_waited_for) {
  alignas(8) auto control = page();
  control.sequence = 5;
  EXPECT_FALSE(read_control(&control));
  control.sequence = 6;
  EXPECT_TRUE(read_control(&control));
}

TEST(Pages, what_is_read_was_never_half_written) {
  auto control = std::make_unique<agent_abi::Control>(page());
  std::atomic<bool> is_over{false};
  std::thread writer([&] {
    for (std::uint32_t i = 0; !is_over; i++) {
      __atomic_store_n(&control->sequence, 2 * i + 1, __ATOMIC_RELAXED);
      __atomic_store_n(&control->sample_hz, i, __ATOMIC_RELEASE);
      __atomic_store_n(&control->gpus[7].mask[31], i, __ATOMIC_RELEASE);
      __atomic_store_n(&control->sequence, 2 * i + 2, __ATOMIC_RELEASE);
    }
  });
  for (int i = 0; i < 20'000; i++) {
    const auto copy = read_control(control.get());
    if (!copy) continue;
    EXPECT_EQ(copy->sample_hz, copy->gpus[7].mask[31]);
  }
  is_over = true;
  writer.join();
}

TEST(MemoryBook, refuses_beyond_the_limit_and_has_room_again_after_freeing) {
  MemoryBook book;
  book.set_limit(100);
  int one = 0;
  ASSERT_TRUE(book.reserve(60));
  book.commit(&one, 60);
  EXPECT_FALSE(book.reserve(41));
  EXPECT_TRUE(book.reserve(40));
  book.cancel(40);
  EXPECT_EQ(book.refused(), 1U);
  EXPECT_EQ(book.forget(&one), 60U);
  EXPECT_TRUE(book.reserve(100));
}

TEST(MemoryBook, a_limit_below_what_is_used_refuses_and_takes_nothing) {
  MemoryBook book;
  int one = 0;
  ASSERT_TRUE(book.reserve(60));
  book.commit(&one, 60);
  book.set_limit(10);
  EXPECT_FALSE(book.reserve(1));
  EXPECT_EQ(book.used(), 60U);
  EXPECT_EQ(book.forget(&one), 60U);
  EXPECT_EQ(book.forget(&one), 0U);
  EXPECT_EQ(book.used(), 0U);
}

TEST(MemoryBook, what_the_runtime_does_not_free_is_counted_on) {
  MemoryBook book;
  int one = 0;
  ASSERT_TRUE(book.reserve(60));
  book.commit(&one, 60);
  const auto bytes = book.forget(&one);
  book.put_back(&one, bytes);
  EXPECT_EQ(book.used(), 60U);
}

TEST(MemoryBook, an_address_that_comes_again_was_freed_in_between) {
  MemoryBook book;
  int one = 0;
  for (int i = 0; i < 3; i++) {
    ASSERT_TRUE(book.reserve(60));
    book.commit(&one, 60);
  }
  EXPECT_EQ(book.used(), 60U);
}

TEST(MemoryBook, threads_never_get_more_than_the_limit) {
  MemoryBook book;
  book.set_limit(1000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&book] {
      char addresses[16];
      for (int i = 0; i < 5000; i++) {
        const void* memory = &addresses[i % 16];
        if (book.forget(memory) != 0 || !book.reserve(100)) continue;
        EXPECT_LE(book.used(), 1000U);
        book.commit(memory, 100);
      }
      for (const char& memory : addresses) book.forget(&memory);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(book.used(), 0U);
}

// --- serial ------------------------------------------------------------------------------------

using Headers = std::vector<std::uint16_t>;
Headers forwarded;
int writes = 0;

struct TestPacket {
  std::uint16_t header;
  char rest[62];
};

void note(const void* packets, std::uint64_t count) {
  writes++;
  for (std::uint64_t i = 0; i < count; i++)
    forwarded.push_back(static_cast<const TestPacket*>(packets)[i].header);
}

Headers through_handler(const Headers& headers, bool on) {
  std::vector<TestPacket> packets(headers.size());
  for (std::size_t i = 0; i < headers.size(); i++) packets[i].header = headers[i];
  std::atomic<bool> flag{on};
  forwarded.clear();
  writes = 0;
  serialize(packets.data(), packets.size(), 0, &flag, note);
  EXPECT_EQ(writes, 1);
  for (std::size_t i = 0; i < headers.size(); i++) EXPECT_EQ(packets[i].header, headers[i]);
  return forwarded;
}

constexpr std::uint16_t kBit = 1U << HSA_PACKET_HEADER_BARRIER;

TEST(Serial, kernels_and_barriers_get_the_barrier_bit_and_others_do_not) {
  EXPECT_EQ(through_handler({HSA_PACKET_TYPE_KERNEL_DISPATCH, HSA_PACKET_TYPE_BARRIER_AND,
                             HSA_PACKET_TYPE_BARRIER_OR, HSA_PACKET_TYPE_VENDOR_SPECIFIC,
                             HSA_PACKET_TYPE_AGENT_DISPATCH, HSA_PACKET_TYPE_INVALID},
                            true),
            (Headers{HSA_PACKET_TYPE_KERNEL_DISPATCH | kBit, HSA_PACKET_TYPE_BARRIER_AND | kBit,
                     HSA_PACKET_TYPE_BARRIER_OR | kBit, HSA_PACKET_TYPE_VENDOR_SPECIFIC,
                     HSA_PACKET_TYPE_AGENT_DISPATCH, HSA_PACKET_TYPE_INVALID}));
}

TEST(Serial, many_packets_at_once_are_forwarded_at_once) {
  const Headers many(100, HSA_PACKET_TYPE_KERNEL_DISPATCH);
  EXPECT_EQ(through_handler(many, true), Headers(100, HSA_PACKET_TYPE_KERNEL_DISPATCH | kBit));
}

TEST(Serial, switched_off_packets_pass_unchanged) {
  EXPECT_EQ(through_handler({HSA_PACKET_TYPE_KERNEL_DISPATCH}, false),
            (Headers{HSA_PACKET_TYPE_KERNEL_DISPATCH}));
}

}  // namespace
}  // namespace apusched::agent
