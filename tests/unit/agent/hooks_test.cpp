// SPDX-License-Identifier: MIT
// What a program sees that calls through the table, and what the daemon sees of it.
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "unit/agent/agent_fixture.hpp"

namespace apusched::agent {
namespace {

class Hooks : public AgentTest {};

class Random {
 public:
  explicit Random(int seed) : engine_(static_cast<unsigned>(seed)) {}
  std::uint32_t operator()() { return static_cast<std::uint32_t>(engine_()); }

 private:
  std::mt19937 engine_;
};

hsa_status_t make_status() {
  hsa_status_t status{};
  hsa().make(HSA_QUEUE_TYPE_MULTI, &status);
  return status;
}

TEST_F(Hooks, queues_come_and_go_while_masks_and_priorities_change) {
  attach();
  std::atomic<bool> is_over{false};
  std::vector<std::thread> program;
  for (int t = 0; t < 3; t++) {
    program.emplace_back([&is_over, t] {
      Random random(t);
      while (!is_over) {
        hsa_queue_t* queue = hsa().make();
        hsa().core().hsa_queue_add_write_index_screlease_fn(queue, 1);
        if (random() % 2 == 0) hsa().set_mask(queue, 0x3F);
        if (random() % 2 == 0)
          hsa().amd().hsa_amd_queue_set_priority_fn(queue, HSA_AMD_QUEUE_PRIORITY_HIGH);
        hsa().get_mask(queue);
        for (unsigned i = random() % 40; i > 0; i--) std::this_thread::yield();
        EXPECT_EQ(hsa().destroy(queue), HSA_STATUS_SUCCESS);
      }
    });
  }
  Random random(99);
  for (int i = 0; i < 300; i++) {
    peer_->set([&](auto& page) {
      page.sample_hz = random() % 2 * 1000;
      page.priority = random() % 4;
      page.gpus[0] = {random() % 2 * 32, {random()}};
    });
    std::this_thread::yield();
  }
  peer_->settled();
  is_over = true;
  for (auto& thread : program) thread.join();
  EXPECT_EQ(hsa().violations, 0U);
  const auto report = peer_->report([](const auto& t) { return t.queue_count == 0; });
  EXPECT_EQ(report.reported_queues, 0U);
}

TEST_F(Hooks, totals_never_go_back) {
  attach();
  peer_->set([](auto& page) { page.sample_hz = 1000; });
  std::atomic<bool> is_over{false};
  std::thread program([&] {
    while (!is_over) {
      hsa_queue_t* queue = hsa().make();
      hsa().core().hsa_queue_add_write_index_relaxed_fn(queue, 3);
      hsa().destroy(queue);
    }
  });
  std::uint64_t submitted = 0;
  std::uint64_t seen = 0;
  EXPECT_TRUE(eventually([&] {
    const auto report = peer_->telemetry();
    if (!report) return false;
    EXPECT_GE(report->submitted, submitted);
    seen += report->submitted > submitted ? 1 : 0;
    submitted = report->submitted;
    return seen > 50;
  }));
  is_over = true;
  program.join();
}

TEST_F(Hooks, the_queue_limit_refuses_and_makes_room_again) {
  attach();
  peer_->set([](auto& page) { page.queue_limit = 2; });
  peer_->settled();
  hsa_queue_t* first = hsa().make();
  ASSERT_TRUE(hsa().make());
  EXPECT_EQ(make_status(), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
  EXPECT_EQ(peer_->report([](const auto& t) { return t.refused_queues == 1; }).queue_count, 2U);
  hsa().destroy(first);
  EXPECT_EQ(make_status(), HSA_STATUS_SUCCESS);
}

TEST_F(Hooks, a_queue_that_the_runtime_does_not_make_is_not_counted) {
  attach();
  peer_->set([](auto& page) { page.queue_limit = 1; });
  peer_->settled();
  hsa_queue_t* queue = nullptr;
  EXPECT_EQ(hsa().core().hsa_queue_create_fn(fake::kGpu, 3, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr,
                                             0, 0, &queue),
            HSA_STATUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(make_status(), HSA_STATUS_SUCCESS);
}

TEST_F(Hooks, a_cooperative_queue_is_left_alone) {
  attach();
  peer_->set([](auto& page) {
    page.queue_limit = 1;
    page.serial = 1;
    page.priority = 1;
    page.gpus[0] = {32, {0xF}};
  });
  peer_->settled();
  hsa_queue_t* queue = hsa().make(HSA_QUEUE_TYPE_COOPERATIVE);
  ASSERT_TRUE(queue);
  EXPECT_EQ(hsa().make(HSA_QUEUE_TYPE_COOPERATIVE), queue);
  const auto report = peer_->report([](const auto& t) { return t.queue_count == 1; });
  EXPECT_EQ(report.queues[0].flags, agent_abi::kQueueLeftAlone);
  EXPECT_TRUE(hsa().mask_of(queue).empty());
  EXPECT_FALSE(hsa().find(queue)->is_intercept);
}

TEST_F(Hooks, the_memory_limit_counts_what_is_allocated_and_freed) {
  attach();
  peer_->set([](auto& page) { page.memory_limit_bytes = 1000; });
  peer_->settled();
  void* memory = hsa().allocate(900);
  ASSERT_TRUE(memory);
  hsa_status_t status{};
  EXPECT_EQ(hsa().allocate(101, &status), nullptr);
  EXPECT_EQ(status, HSA_STATUS_ERROR_OUT_OF_RESOURCES);
  EXPECT_EQ(peer_->report([](const auto& t) { return t.refused_allocations == 1; }).memory_bytes,
            900U);
  // Either call frees what the other has allocated.
  EXPECT_EQ(hsa().core().hsa_memory_free_fn(memory), HSA_STATUS_SUCCESS);
  EXPECT_EQ(hsa().core().hsa_memory_allocate_fn({}, 1000, &memory), HSA_STATUS_SUCCESS);
  EXPECT_EQ(hsa().amd().hsa_amd_memory_pool_free_fn(nullptr), HSA_STATUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(hsa().allocate(1, &status), nullptr);
  EXPECT_EQ(hsa().amd().hsa_amd_memory_pool_free_fn(memory), HSA_STATUS_SUCCESS);
}

TEST_F(Hooks, serial_can_be_switched_off_on_a_live_queue) {
  attach();
  peer_->set([](auto& page) { page.serial = 1; });
  peer_->settled();
  hsa_queue_t* queue = hsa().make();
  ASSERT_TRUE(hsa().find(queue)->is_intercept);
  const auto report = peer_->report([](const auto& t) { return t.queue_count == 1; });
  EXPECT_EQ(applied(report.serial), Applied::applied);
  EXPECT_EQ(report.queues[0].flags, agent_abi::kQueueSerial);
  peer_->set([](auto& page) { page.serial = 0; });
  EXPECT_EQ(peer_->settled().queues[0].flags, 0U);
}

TEST_F(Hooks, a_queue_that_is_older_than_the_wish_is_not_serial) {
  attach();
  hsa().make();
  peer_->set([](auto& page) { page.serial = 1; });
  EXPECT_EQ(applied(peer_->settled().serial), Applied::unsupported);
}

TEST_F(Hooks, the_environment_acts_from_the_first_queue_on) {
  set("APUSCHED_QUEUE_LIMIT", "1");
  set("APUSCHED_SERIAL", "1");
  set("APUSCHED_MEMORY_LIMIT_MIB", "1");
  load();
  hsa_queue_t* queue = hsa().make();
  ASSERT_TRUE(queue);
  EXPECT_TRUE(hsa().find(queue)->is_intercept);
  EXPECT_EQ(make_status(), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
  EXPECT_EQ(hsa().allocate((1 << 20) + 1), nullptr);
}

TEST_F(Hooks, another_tool_that_came_first_is_called_and_makes_the_queues) {
  static decltype(hsa_queue_create)* before = nullptr;
  static std::atomic<int> calls{0};
  before = hsa().core().hsa_queue_create_fn;
  calls = 0;
  hsa().core().hsa_queue_create_fn =
      [](hsa_agent_t agent, std::uint32_t size, hsa_queue_type32_t type,
         void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data, std::uint32_t one,
         std::uint32_t two, hsa_queue_t** queue) {
        calls++;
        return before(agent, size, type, callback, data, one, two, queue);
      };
  attach();
  ASSERT_TRUE(hsa().make());
  EXPECT_EQ(calls, 1);
}

TEST_F(Hooks, what_another_tool_has_put_over_ours_stays_and_works) {
  attach();
  static decltype(hsa_queue_create)* ours = nullptr;
  ours = hsa().core().hsa_queue_create_fn;
  const auto theirs = [](hsa_agent_t agent, std::uint32_t size, hsa_queue_type32_t type,
                         void (*callback)(hsa_status_t, hsa_queue_t*, void*), void* data,
                         std::uint32_t one, std::uint32_t two, hsa_queue_t** queue) {
    return ours(agent, size, type, callback, data, one, two, queue);
  };
  hsa().core().hsa_queue_create_fn = theirs;
  unload();
  EXPECT_NE(hsa().core().hsa_queue_create_fn, ours);
  EXPECT_TRUE(hsa().make());
}

TEST_F(Hooks, the_gate_holds_submissions_back_and_opens_when_the_daemon_goes) {
  attach();
  hsa_queue_t* queue = hsa().make();
  peer_->settled();
  std::atomic<bool> is_over{false};
  std::thread program([&] {
    while (!is_over) hsa().core().hsa_queue_add_write_index_relaxed_fn(queue, 1);
  });
  peer_->set([](auto& page) { page.gate_closed_until_ns = UINT64_MAX; });
  const auto report = peer_->report([&](const auto& t) {
    if (t.gate_waits == 0) peer_->wake();
    return t.gate_waits > 0;
  });
  EXPECT_GT(report.gate_wait_ns, 0U);
  peer_->hang_up();
  const auto index = [&] { return hsa().find(queue)->written.load(); };
  const auto before = index();
  EXPECT_TRUE(eventually([&] { return index() > before + 1000; }));
  is_over = true;
  program.join();
}

TEST_F(Hooks, packets_that_wait_are_sampled_and_how_long_they_wait_is_measured) {
  attach();
  hsa_queue_t* queue = hsa().make();
  hsa().core().hsa_queue_add_write_index_relaxed_fn(queue, 5);
  peer_->set([](auto& page) { page.sample_hz = 1000; });
  auto report = peer_->report([](const auto& t) { return t.busy_samples >= 3; });
  EXPECT_GE(report.backlog_sum, 5 * report.busy_samples);
  EXPECT_EQ(report.submitted, 5U);
  EXPECT_EQ(report.taken, 0U);
  hsa().find(queue)->taken = 5;
  report = peer_->report([](const auto& t) { return t.wait_count >= 1; });
  EXPECT_GT(report.waits_ns[0], 0U);
  const auto idle = peer_->report([&](const auto& t) { return t.samples > report.samples + 3; });
  EXPECT_EQ(idle.taken, 5U);
}

TEST_F(Hooks, more_queues_than_fit_the_report_are_counted) {
  attach();
  for (std::size_t i = 0; i < agent_abi::kMaxQueues + 5; i++) ASSERT_TRUE(hsa().make());
  const auto report =
      peer_->report([](const auto& t) { return t.queue_count == agent_abi::kMaxQueues + 5; });
  EXPECT_EQ(report.reported_queues, agent_abi::kMaxQueues);
}

}  // namespace
}  // namespace apusched::agent
