// SPDX-License-Identifier: MIT
#include "agent/queue_registry.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "doubles/fake_agent_daemon.hpp"
#include "doubles/fake_hsa.hpp"

namespace apusched::agent {
namespace {

using fake::hsa;

class Registry : public testing::Test {
 protected:
  void SetUp() override {
    hsa().reset();
    Tables tables;
    ASSERT_TRUE(open_tables(hsa().table(), &tables));
    runtime_ = runtime_of(tables);
  }
  hsa_queue_t* add() {
    EXPECT_TRUE(registry_.reserve(0));
    QueueFacts facts;
    facts.handle = hsa().make();
    facts.id = facts.handle->id;
    registry_.add(facts);
    return facts.handle;
  }

  Runtime runtime_{};
  QueueRegistry registry_;
};

TEST_F(Registry, counts_live_queues_against_the_limit) {
  ASSERT_TRUE(registry_.reserve(2));
  ASSERT_TRUE(registry_.reserve(2));
  EXPECT_FALSE(registry_.reserve(2));
  EXPECT_EQ(registry_.refused(), 1U);
  registry_.give_up();
  EXPECT_TRUE(registry_.reserve(2));
  EXPECT_TRUE(registry_.reserve(0));
}

TEST_F(Registry, a_queue_that_is_taken_is_unknown_and_its_packets_stay_counted) {
  hsa_queue_t* queue = add();
  hsa().find(queue)->written = 5;
  hsa().find(queue)->taken = 4;
  ASSERT_TRUE(registry_.take(queue, runtime_));
  EXPECT_FALSE(registry_.hold(queue, [](const QueueFacts&, QueueLevers&) { FAIL(); }));
  EXPECT_FALSE(registry_.take(queue, runtime_));
  std::vector<QueueView> views;
  EXPECT_EQ(registry_.look(runtime_, &views).written, 5U);
  EXPECT_TRUE(views.empty());
}

TEST_F(Registry, one_that_could_not_be_destroyed_is_as_before) {
  hsa_queue_t* queue = add();
  hsa().find(queue)->written = 5;
  registry_.put_back(*registry_.take(queue, runtime_));
  std::vector<QueueView> views;
  EXPECT_EQ(registry_.look(runtime_, &views).written, 0U);
  EXPECT_EQ(views.size(), 1U);
}

TEST_F(Registry, a_held_queue_is_not_taken_until_it_is_free) {
  hsa_queue_t* queue = add();
  std::atomic<bool> is_taken{false};
  std::thread taker;
  registry_.hold(queue, [&](const QueueFacts&, QueueLevers&) {
    taker = std::thread([&] { is_taken = registry_.take(queue, runtime_).has_value(); });
    for (int i = 0; i < 1000; i++) std::this_thread::yield();
    EXPECT_FALSE(is_taken);
  });
  taker.join();
  EXPECT_TRUE(is_taken);
}

TEST_F(Registry, who_holds_a_queue_and_asks_for_it_again_is_refused_and_not_stuck) {
  hsa_queue_t* queue = add();
  registry_.hold(queue, [&](const QueueFacts&, QueueLevers&) {
    EXPECT_FALSE(registry_.hold(queue, [](const QueueFacts&, QueueLevers&) { FAIL(); }));
  });
}

TEST_F(Registry, what_was_changed_while_holding_stays) {
  hsa_queue_t* queue = add();
  registry_.hold(queue, [](const QueueFacts&, QueueLevers& levers) { levers.failures = 7; });
  EXPECT_EQ(registry_.find(queue)->levers.failures, 7U);
}

TEST_F(Registry, a_cooperative_queue_is_left_alone_until_its_last_user_is_gone) {
  QueueFacts facts;
  facts.handle = hsa().make(HSA_QUEUE_TYPE_COOPERATIVE);
  facts.left_alone = true;
  registry_.add_shared(facts);
  registry_.add_shared(facts);
  EXPECT_FALSE(registry_.hold(facts.handle, [](const QueueFacts&, QueueLevers&) { FAIL(); }));
  EXPECT_FALSE(registry_.take(facts.handle, runtime_));
  EXPECT_TRUE(registry_.find(facts.handle));
  EXPECT_TRUE(registry_.take(facts.handle, runtime_));
  EXPECT_FALSE(registry_.find(facts.handle));
}

TEST_F(Registry, another_queue_at_the_same_address_is_not_looked_at_in_its_place) {
  hsa_queue_t* queue = add();
  EXPECT_TRUE(registry_.look(runtime_, queue, queue->id));
  EXPECT_FALSE(registry_.look(runtime_, queue, queue->id + 1));
}

}  // namespace
}  // namespace apusched::agent
