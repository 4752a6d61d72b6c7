// SPDX-License-Identifier: MIT
#include <dirent.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>
#include <vector>

#include "agent/attachment.hpp"
#include "unit/agent/agent_fixture.hpp"

namespace apusched::agent {
namespace {

class Attach : public AgentTest {};

std::size_t threads() {
  std::size_t count = 0;
  DIR* tasks = opendir("/proc/self/task");
  while (readdir(tasks) != nullptr) count++;
  closedir(tasks);
  return count;
}

std::size_t descriptors() {
  std::size_t count = 0;
  DIR* open = opendir("/proc/self/fd");
  while (readdir(open) != nullptr) count++;
  closedir(open);
  return count;
}

TEST_F(Attach, says_who_it_is_and_what_it_can_do) {
  attach();
  const auto& hello = peer_->hello;
  EXPECT_EQ(hello.magic, agent_abi::kMagic);
  EXPECT_EQ(hello.size, sizeof hello);
  EXPECT_EQ(hello.features, 0x3FU);
  EXPECT_EQ(hello.amd_table_bytes, sizeof(AmdExtTable));
  ASSERT_EQ(hello.gpu_count, 1U);
  EXPECT_STREQ(hello.gpus[0].isa, "gfx1035");
  EXPECT_EQ(hello.gpus[0].pci_bdf, 0x0400U);
  EXPECT_EQ(hello.gpus[0].compute_units, 12U);
}

TEST_F(Attach, takes_settings_and_gives_them_back_when_the_daemon_goes) {
  attach();
  hsa_queue_t* queue = hsa().make();
  peer_->mask(32, 0xF);
  EXPECT_EQ(applied(peer_->settled().mask[0]), Applied::applied);
  EXPECT_EQ(mask_of(queue), 0xFU);
  peer_->hang_up();
  EXPECT_TRUE(eventually([&] { return hsa().mask_of(queue).empty(); }));
  EXPECT_EQ(hsa().mask_changes_of(queue), 2U);
}

TEST_F(Attach, comes_back_to_a_daemon_that_was_started_again_and_counts_anew) {
  attach();
  hsa_queue_t* queue = hsa().make();
  peer_->mask(32, 0xF);
  peer_->settled();
  peer_->mask(32, 0xFF);
  peer_->settled();
  daemon_.stop();
  peer_->hang_up();
  daemon_.listen();
  auto next = daemon_.accept();
  ASSERT_TRUE(next);
  next->write([](auto& page) { page.gpus[0] = {32, {0xC}}; });
  next->welcome();
  next->report([&](const auto& t) {
    EXPECT_LE(t.control_sequence, 2U);  // not what the first daemon counted
    return t.control_sequence == 2;
  });
  EXPECT_EQ(mask_of(queue), 0xCU);
}

TEST_F(Attach, finds_a_daemon_whose_directory_comes_into_being_later) {
  const std::string path = daemon_.directory() + "/deep/er/agent.sock";
  set("APUSCHED_AGENT_SOCKET", path);
  load();
  hsa().make();
  mkdir((daemon_.directory() + "/deep").c_str(), 0755);
  mkdir((daemon_.directory() + "/deep/er").c_str(), 0755);
  daemon_.listen();
  ASSERT_EQ(rename(daemon_.path().c_str(), path.c_str()), 0);
  EXPECT_TRUE(daemon_.accept());
  unlink(path.c_str());
  rmdir((daemon_.directory() + "/deep/er").c_str());
  rmdir((daemon_.directory() + "/deep").c_str());
}

TEST_F(Attach, the_first_queue_has_what_the_control_page_says) {
  daemon_.listen();
  std::thread daemon([&] {
    peer_ = daemon_.accept();
    peer_->write([](auto& page) { page.serial = 1; });
    peer_->welcome();
  });
  load();
  hsa_queue_t* queue = hsa().make();
  daemon.join();
  EXPECT_TRUE(hsa().find(queue)->is_intercept);
}

TEST_F(Attach, a_daemon_that_does_not_answer_holds_the_program_up_for_a_moment_only) {
  set("APUSCHED_AGENT_WAIT_MS", "1");
  daemon_.listen();
  load();
  EXPECT_TRUE(hsa().make());
}

TEST_F(Attach, without_a_daemon_nobody_waits) {
  Attachment attachment;
  attachment.begin(std::chrono::hours{24});
  attachment.alone();
  attachment.wait_for_answer();  // returns
  EXPECT_FALSE(attachment.is_attached());
}

TEST_F(Attach, all_queues_that_are_made_meanwhile_wait_for_the_answer) {
  Attachment attachment;
  attachment.begin(std::chrono::hours{24});
  std::vector<std::thread> makers;
  std::atomic<int> seen_attached{0};
  for (int i = 0; i < 4; i++) {
    makers.emplace_back([&] {
      attachment.wait_for_answer();
      seen_attached += attachment.is_attached() ? 1 : 0;
    });
  }
  for (int i = 0; i < 1000; i++) std::this_thread::yield();
  attachment.attached();
  for (auto& maker : makers) maker.join();
  EXPECT_EQ(seen_attached, 4);
}

TEST_F(Attach, unloading_leaves_nothing_behind) {
  auto* const create = hsa().core().hsa_queue_create_fn;
  load();
  unload();
  const std::size_t before = threads();
  const std::size_t open = descriptors();  // an eventfd stays, and is used again
  daemon_.listen();
  for (int i = 0; i < 20; i++) {
    load();
    EXPECT_NE(hsa().core().hsa_queue_create_fn, create);
    unload();
    EXPECT_EQ(hsa().core().hsa_queue_create_fn, create);
  }
  daemon_.stop();
  EXPECT_TRUE(eventually([&] { return threads() == before; }));
  EXPECT_EQ(descriptors(), open);
}

TEST_F(Attach, named_twice_it_is_loaded_once) {
  attach();
  load();
  EXPECT_FALSE(daemon_.has_caller());
  hsa_queue_t* queue = hsa().make();
  peer_->mask(32, 0xF);
  peer_->settled();
  EXPECT_EQ(hsa().mask_changes_of(queue), 1U);
}

TEST_F(Attach, a_table_that_it_does_not_know_is_left_alone) {
  auto* const create = hsa().core().hsa_queue_create_fn;
  hsa().table()->amd_ext_->version.minor_id = 128;  // ends before the last entry that is needed
  load();
  EXPECT_EQ(hsa().core().hsa_queue_create_fn, create);
  hsa().table()->amd_ext_->version.minor_id = sizeof(AmdExtTable);
  hsa().core().hsa_queue_destroy_fn = nullptr;
  load();
  EXPECT_EQ(hsa().core().hsa_queue_create_fn, create);
  hsa().table()->core_ = nullptr;
  load();
  EXPECT_TRUE(OnLoad(nullptr, 1, 0, nullptr));
}

TEST_F(Attach, in_the_table_of_another_release_it_touches_only_what_has_never_moved) {
  hsa().amd().version.minor_id = sizeof(AmdExtTable) + 56;
  auto* const priority = hsa().amd().hsa_amd_queue_set_priority_fn;
  auto* const get_mask = hsa().amd().hsa_amd_queue_cu_get_mask_fn;
  attach();
  EXPECT_EQ(hsa().amd().hsa_amd_queue_set_priority_fn, priority);
  EXPECT_EQ(hsa().amd().hsa_amd_queue_cu_get_mask_fn, get_mask);
  EXPECT_EQ(peer_->hello.features & agent_abi::kFeatureSerial, 0U);
  hsa_queue_t* queue = hsa().make();
  peer_->set([](auto& page) {
    page.gpus[0] = {32, {0xF}};
    page.serial = 1;
  });
  const auto report = peer_->settled();
  EXPECT_EQ(mask_of(queue), 0xFU);
  EXPECT_EQ(applied(report.serial), Applied::unsupported);
}

TEST_F(Attach, a_child_of_fork_has_no_agent_and_the_parent_keeps_its_own) {
  attach();
  hsa_queue_t* queue = hsa().make();
  peer_->mask(32, 0xF);
  peer_->settled();
  const pid_t child = fork();
  if (child == 0) {
    // Through the table, as the runtime would: no lock of the parent's may be waited for.
    hsa().core().hsa_queue_add_write_index_relaxed_fn(queue, 1);
    const bool made = hsa().make() != nullptr;
    OnUnload();
    OnLoad(hsa().table(), 1, 0, nullptr);
    _exit(made ? 7 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  peer_->mask(32, 0x3);
  peer_->settled();
  EXPECT_EQ(mask_of(queue), 0x3U);
}

}  // namespace
}  // namespace apusched::agent
