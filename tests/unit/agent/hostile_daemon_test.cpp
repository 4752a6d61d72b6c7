// SPDX-License-Identifier: MIT
// Whatever listens at the socket: the program goes on, with the settings that it was started with.
#include <random>

#include "unit/agent/agent_fixture.hpp"

namespace apusched::agent {
namespace {

class HostileDaemon : public AgentTest {
 protected:
  void greet() {
    daemon_.listen();
    load();
    peer_ = daemon_.accept();
    ASSERT_TRUE(peer_);
  }
  void expect_the_program_goes_on() {
    hsa_queue_t* queue = hsa().make();
    ASSERT_TRUE(queue);
    hsa().core().hsa_queue_add_write_index_relaxed_fn(queue, 1);
    EXPECT_EQ(hsa().destroy(queue), HSA_STATUS_SUCCESS);
  }
};

TEST_F(HostileDaemon, pages_that_are_not_sealed) {
  greet();
  const int page = fake::make_page({sizeof(agent_abi::Control), F_SEAL_GROW});
  peer_->welcome_with(page, peer_->telemetry_fd);
  EXPECT_TRUE(peer_->has_left());
  expect_the_program_goes_on();
  close(page);
}

TEST_F(HostileDaemon, pages_that_are_too_short) {
  greet();
  const int page = fake::make_page({sizeof(agent_abi::Telemetry) - 1});
  peer_->welcome_with(peer_->control_fd, page);
  EXPECT_TRUE(peer_->has_left());
  expect_the_program_goes_on();
  close(page);
}

TEST_F(HostileDaemon, descriptors_that_are_no_pages) {
  greet();
  peer_->welcome_with(STDIN_FILENO, STDIN_FILENO);
  EXPECT_TRUE(peer_->has_left());
  expect_the_program_goes_on();
}

TEST_F(HostileDaemon, a_welcome_without_pages) {
  greet();
  peer_->refuse(agent_abi::Refusal::none);
  EXPECT_TRUE(peer_->has_left());
  expect_the_program_goes_on();
}

TEST_F(HostileDaemon, a_refusal) {
  greet();
  peer_->refuse(agent_abi::Refusal::full);
  EXPECT_TRUE(peer_->has_left());
  expect_the_program_goes_on();
}

TEST_F(HostileDaemon, bytes_of_any_kind_in_place_of_a_welcome) {
  std::mt19937 random(3);
  daemon_.listen();
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{15}, std::size_t{16}, std::size_t{17}, std::size_t{4000}}) {
    load();
    peer_ = daemon_.accept();
    ASSERT_TRUE(peer_);
    std::vector<std::uint32_t> bytes(1000);
    for (auto& word : bytes) word = static_cast<std::uint32_t>(random());
    peer_->send_bytes(bytes.data(), size);
    EXPECT_TRUE(peer_->has_left());
    expect_the_program_goes_on();
    unload();
  }
}

TEST_F(HostileDaemon, bytes_of_any_kind_in_place_of_a_wake) {
  attach();
  hsa_queue_t* queue = hsa().make();
  peer_->mask(32, 0xF);
  peer_->settled();
  peer_->send_bytes("nonsense", 9);
  EXPECT_TRUE(peer_->has_left());
  EXPECT_TRUE(eventually([&] { return hsa().mask_of(queue).empty(); }));
  expect_the_program_goes_on();
}

TEST_F(HostileDaemon, a_control_page_of_garbage_releases_what_was_set) {
  attach();
  hsa_queue_t* queue = hsa().make();
  peer_->mask(32, 0xF);
  peer_->settled();
  peer_->set([](auto& page) { page.gpus[3].mask_bits = 77; });
  EXPECT_TRUE(peer_->has_left());
  EXPECT_TRUE(eventually([&] { return hsa().mask_of(queue).empty(); }));
}

TEST_F(HostileDaemon, a_control_page_that_is_being_written_for_ever_changes_nothing) {
  attach();
  hsa_queue_t* queue = hsa().make();
  peer_->mask(32, 0xF);
  peer_->settled();
  peer_->control->gpus[0].mask[0] = 0x3;
  __atomic_store_n(&peer_->control->sequence, 77, __ATOMIC_RELEASE);
  for (int i = 0; i < 100; i++) peer_->wake();
  expect_the_program_goes_on();
  EXPECT_EQ(mask_of(queue), 0xFU);
  __atomic_store_n(&peer_->control->sequence, 78, __ATOMIC_RELEASE);
  peer_->wake();
  peer_->settled();
  EXPECT_EQ(mask_of(queue), 0x3U);
}

TEST_F(HostileDaemon, masks_that_enable_nothing_are_never_set) {
  attach();
  hsa_queue_t* queue = hsa().make();
  for (const std::uint32_t word : {0U, 0x5U, 0xFFFFF000U}) {
    peer_->mask(32, word);
    EXPECT_EQ(applied(peer_->settled().mask[0]), Applied::conflict);
    EXPECT_TRUE(hsa().mask_of(queue).empty());
  }
}

TEST_F(HostileDaemon, a_flood_of_wakes_does_not_keep_the_agent_from_ending) {
  attach();
  std::atomic<bool> is_over{false};
  std::thread flood([&] {
    while (!is_over) peer_->wake();
  });
  expect_the_program_goes_on();
  unload();
  is_over = true;
  flood.join();
}

TEST_F(HostileDaemon, one_that_hangs_up_at_once) {
  daemon_.listen();
  load();
  for (int i = 0; i < 3; i++) {
    peer_ = daemon_.accept();
    ASSERT_TRUE(peer_);
    peer_->hang_up();
  }
  expect_the_program_goes_on();
}

}  // namespace
}  // namespace apusched::agent
