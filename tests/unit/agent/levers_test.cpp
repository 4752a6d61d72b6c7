// SPDX-License-Identifier: MIT
// One queue and a clock that the test turns.
#include "agent/levers.hpp"

#include <gtest/gtest.h>

#include "doubles/fake_hsa.hpp"

namespace apusched::agent {
namespace {

using agent_abi::Applied;
using agent_abi::Priority;
using fake::hsa;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Nanoseconds kNow = seconds{100};
constexpr Nanoseconds kNothing{0};

class Levers : public testing::Test {
 protected:
  void SetUp() override {
    hsa().reset();
    Tables tables;
    ASSERT_TRUE(open_tables(hsa().table(), &tables));
    runtime_ = runtime_of(tables);
    queue_ = hsa().make();
    facts_.handle = queue_;
    facts_.base = all_of(12);
    facts_.pairs = true;
  }
  void TearDown() override { EXPECT_EQ(hsa().violations, 0U); }

  void wish_mask(std::uint32_t word) { wish_.masks[0] = mask_from(word == 0 ? 0 : 32, &word); }
  Nanoseconds bring(Nanoseconds now) { return bring_to(wish_, runtime_, now, facts_, levers_); }
  Applied mask_outcome() const { return static_cast<Applied>(levers_.mask.applied); }
  std::uint32_t mask() const {
    const auto words = hsa().mask_of(queue_);
    return words.empty() ? 0 : words[0];
  }
  hsa_status_t program_mask(std::uint32_t word) {
    return set_program_mask(runtime_, word == 0 ? 0 : 32, &word, facts_, levers_);
  }

  Runtime runtime_{};
  hsa_queue_t* queue_ = nullptr;
  QueueFacts facts_;
  QueueLevers levers_;
  Settings wish_;
};

TEST_F(Levers, nothing_wished_is_no_call) {
  EXPECT_EQ(bring(kNow), kNothing);
  EXPECT_EQ(hsa().mask_changes_of(queue_), 0U);
  EXPECT_EQ(mask_outcome(), Applied::nothing);
}

TEST_F(Levers, a_wish_is_one_call) {
  wish_mask(0xF);
  EXPECT_EQ(bring(kNow), kNothing);
  EXPECT_EQ(bring(kNow + seconds{1}), kNothing);
  EXPECT_EQ(hsa().mask_changes_of(queue_), 1U);
  EXPECT_EQ(mask_outcome(), Applied::applied);
}

TEST_F(Levers, a_change_comes_no_sooner_than_the_interval_after_the_last) {
  wish_mask(0xF);
  bring(kNow);
  wish_mask(0x3);
  EXPECT_EQ(bring(kNow + milliseconds{1}), kNow + kChangeInterval);
  EXPECT_EQ(mask(), 0xFU);
  wish_mask(0xC);
  EXPECT_EQ(bring(kNow + kChangeInterval), kNothing);
  EXPECT_EQ(mask(), 0xCU);  // the last wish
  EXPECT_EQ(hsa().mask_changes_of(queue_), 2U);
}

TEST_F(Levers, a_wish_that_is_taken_back_in_time_is_no_call) {
  wish_mask(0xF);
  bring(kNow);
  wish_mask(0x3);
  bring(kNow + milliseconds{1});
  wish_mask(0xF);
  EXPECT_EQ(bring(kNow + milliseconds{2}), kNothing);
  EXPECT_EQ(hsa().mask_changes_of(queue_), 1U);
}

TEST_F(Levers, released_the_queue_has_all_cus_or_the_programs) {
  wish_mask(0xF);
  bring(kNow);
  wish_mask(0);
  bring(kNow + seconds{1});
  EXPECT_TRUE(hsa().mask_of(queue_).empty());
  EXPECT_EQ(mask_outcome(), Applied::nothing);
  ASSERT_EQ(program_mask(0x3F), HSA_STATUS_SUCCESS);
  wish_mask(0xFC);
  bring(kNow + seconds{2});
  EXPECT_EQ(mask(), 0x3CU);
  wish_mask(0);
  bring(kNow + seconds{3});
  EXPECT_EQ(mask(), 0x3FU);
}

TEST_F(Levers, the_program_reads_its_own_mask) {
  wish_mask(0xC);
  bring(kNow);
  std::uint32_t word = 0;
  copy_program_mask(facts_, levers_, 32, &word);
  EXPECT_EQ(word, 0xFFFU);
  ASSERT_EQ(program_mask(0xF), HSA_STATUS_SUCCESS);
  EXPECT_EQ(mask(), 0xCU);
  copy_program_mask(facts_, levers_, 32, &word);
  EXPECT_EQ(word, 0xFU);
}

TEST_F(Levers, a_mask_that_the_runtime_refuses_is_not_the_programs) {
  ASSERT_EQ(program_mask(0xF), HSA_STATUS_SUCCESS);
  hsa().mask_answer = HSA_STATUS_ERROR;
  EXPECT_EQ(program_mask(0x3), HSA_STATUS_ERROR);
  hsa().mask_answer = HSA_STATUS_SUCCESS;
  EXPECT_EQ(levers_.program_mask.words[0], 0xFU);
}

TEST_F(Levers, a_program_that_leaves_no_cu_has_its_own_mask_alone) {
  wish_mask(0xC);
  bring(kNow);
  ASSERT_EQ(program_mask(0x3), HSA_STATUS_SUCCESS);
  EXPECT_EQ(mask(), 0x3U);
  EXPECT_EQ(mask_outcome(), Applied::conflict);
  ASSERT_EQ(program_mask(0), HSA_STATUS_SUCCESS);
  EXPECT_EQ(mask(), 0xCU);
  EXPECT_EQ(mask_outcome(), Applied::applied);
}

TEST_F(Levers, after_a_failure_it_tries_again_ever_more_seldom) {
  hsa().mask_answer = HSA_STATUS_ERROR;
  wish_mask(0xF);
  Nanoseconds now = kNow;
  Nanoseconds pause{0};
  for (int i = 0; i < 10; i++) {
    const Nanoseconds next = bring(now);
    EXPECT_EQ(mask_outcome(), Applied::failed);
    EXPECT_EQ(levers_.mask.detail, static_cast<std::uint32_t>(HSA_STATUS_ERROR));
    EXPECT_GE(next - now, pause);
    pause = next - now;
    EXPECT_EQ(bring(now + milliseconds{1}), next);
    now = next;
  }
  EXPECT_EQ(pause, seconds{64});
  hsa().mask_answer = HSA_STATUS_SUCCESS;
  EXPECT_EQ(bring(now), kNothing);
  EXPECT_EQ(mask(), 0xFU);
}

TEST_F(Levers, a_reduced_mask_is_in_force) {
  hsa().mask_answer = static_cast<hsa_status_t>(HSA_STATUS_CU_MASK_REDUCED);
  wish_mask(0xF);
  EXPECT_EQ(bring(kNow), kNothing);
  EXPECT_EQ(mask_outcome(), Applied::applied);
}

TEST_F(Levers, priority_is_set_and_back_to_normal_when_released) {
  wish_.priority = Priority::low;
  bring(kNow);
  EXPECT_EQ(hsa().priority_of(queue_), HSA_AMD_QUEUE_PRIORITY_LOW);
  EXPECT_NE(flags_of(facts_, levers_) & agent_abi::kQueuePriority, 0U);
  wish_.priority = Priority::leave;
  bring(kNow + seconds{1});
  EXPECT_EQ(hsa().priority_of(queue_), HSA_AMD_QUEUE_PRIORITY_NORMAL);
}

TEST_F(Levers, the_programs_priority_stays_unless_it_is_normal) {
  wish_.priority = Priority::low;
  bring(kNow);
  ASSERT_EQ(set_program_priority(runtime_, HSA_AMD_QUEUE_PRIORITY_HIGH, facts_, levers_),
            HSA_STATUS_SUCCESS);
  bring(kNow + seconds{1});
  EXPECT_EQ(hsa().priority_of(queue_), HSA_AMD_QUEUE_PRIORITY_HIGH);
  EXPECT_EQ(static_cast<Applied>(levers_.priority.applied), Applied::unsupported);
  ASSERT_EQ(set_program_priority(runtime_, HSA_AMD_QUEUE_PRIORITY_NORMAL, facts_, levers_),
            HSA_STATUS_SUCCESS);
  bring(kNow + seconds{2});
  EXPECT_EQ(hsa().priority_of(queue_), HSA_AMD_QUEUE_PRIORITY_LOW);
}

TEST_F(Levers, without_a_priority_call_it_is_unsupported) {
  runtime_.set_priority = nullptr;
  wish_.priority = Priority::low;
  EXPECT_EQ(bring(kNow), kNothing);
  EXPECT_EQ(static_cast<Applied>(levers_.priority.applied), Applied::unsupported);
}

TEST_F(Levers, the_worse_outcome_is_the_one_to_know) {
  const agent_abi::Setting applied{1, 0}, failed{2, 9}, conflict{3, 0}, unsupported{4, 0};
  EXPECT_EQ(worse(applied, failed).detail, 9U);
  EXPECT_EQ(worse(failed, unsupported).applied, 2U);
  EXPECT_EQ(worse(conflict, unsupported).applied, 4U);
  EXPECT_EQ(worse(conflict, applied).applied, 3U);
}

}  // namespace
}  // namespace apusched::agent
