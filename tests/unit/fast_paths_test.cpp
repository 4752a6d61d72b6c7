// SPDX-License-Identifier: MIT
// The parts of the platform layer that were made for speed must still do what the plain way did.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "platform/file_ledger_store.hpp"
#include "platform/ledger_text.hpp"
#include "platform/procfs_processes.hpp"
#include "platform/sd_event_loop.hpp"

namespace apusched::platform {
namespace {

core::ResourceKey unit(const std::string& name) {
  return {core::LeverKind::cpu_weight, name};
}

core::LedgerEntry entry() {
  return {*core::Weight::make(100), {}, {}, {}, false, {}, false};
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "apusched-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(LedgerText, keeps_names_that_need_escapes) {
  for (const std::string name : {"plain.service", "a\\x2db.service", "say \"no\".service",
                                 "tab\there.service", "\xc3\xa4pfel.service"}) {
    const auto line = parse_line(format_line(LedgerPut{unit(name), entry()}));
    ASSERT_TRUE(line) << name;
    EXPECT_EQ(std::get<LedgerPut>(*line).key, unit(name));
    const auto erase = parse_line(format_line(LedgerErase{unit(name)}));
    ASSERT_TRUE(erase) << name;
    EXPECT_EQ(std::get<LedgerErase>(*erase).key, unit(name));
  }
}

TEST(LedgerText, stays_one_line_of_ascii_whatever_the_name_holds) {
  const auto line = format_line(LedgerPut{unit("x\n\xff\x01y"), entry()});
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_TRUE(
      std::ranges::all_of(line, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
}

TEST(FileLedgerStore, reads_back_records_written_after_it_was_emptied) {
  const TemporaryFolder folder;
  {
    auto store = FileLedgerStore::open(folder.path());
    ASSERT_TRUE(store);
    ASSERT_TRUE((*store)->load());
    ASSERT_TRUE((*store)->put(unit("first.service"), entry()));
    ASSERT_TRUE((*store)->erase({unit("first.service")}));
    EXPECT_LT(std::filesystem::file_size(folder.path() + "/ledger"), 100U);
    ASSERT_TRUE((*store)->put(unit("second.service"), entry()));
  }
  auto store = FileLedgerStore::open(folder.path());
  ASSERT_TRUE(store);
  const auto ledger = (*store)->load();
  ASSERT_TRUE(ledger);
  EXPECT_EQ(ledger->size(), 1U);
  EXPECT_NE(ledger->find(unit("second.service")), nullptr);
}

TEST(SdEventLoop, does_what_was_put_off_before_its_next_callback) {
  const auto loop = std::move(*SdEventLoop::create());
  std::vector<std::string> order;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  const auto watch = loop->watch_readable(ends[0], [&] {
    order.emplace_back("io");
    loop->quit(0);
  });
  loop->soon([&] { order.emplace_back("first"); });
  loop->soon([&] { order.emplace_back("second"); });
  ASSERT_TRUE(loop->run());
  EXPECT_EQ(order, (std::vector<std::string>{"first", "second", "io"}));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(SdEventLoop, does_on_request_what_was_put_off_and_only_once) {
  const auto loop = std::move(*SdEventLoop::create());
  int calls = 0;
  loop->soon([&] {
    ++calls;
    loop->soon([&] { loop->quit(0); });
  });
  loop->catch_up();
  EXPECT_EQ(calls, 1);
  ASSERT_TRUE(loop->run());
  EXPECT_EQ(calls, 1);
}

TEST(ProcfsProcesses, tells_the_same_identity_as_the_full_facts) {
  ProcfsProcesses processes;
  const auto own = *core::Pid::make(::getpid());
  const auto facts = processes.facts(own);
  const auto identity = processes.identity(own);
  ASSERT_TRUE(facts && identity);
  EXPECT_EQ(identity->key, facts->key);
  EXPECT_FALSE(identity->kernel_thread);
}

TEST(ProcfsProcesses, lists_only_threads_that_are_not_known) {
  ProcfsProcesses processes;
  const auto own = *core::Pid::make(::getpid());
  std::thread{[] {}}.join();  // ThreadSanitizer starts a thread of its own with the first
  std::set<core::Tid> known;
  const auto before = processes.threads(own, 100);
  ASSERT_TRUE(before);
  for (const auto& thread : *before) known.insert(thread.key.tid);
  EXPECT_TRUE(processes.threads_besides(own, known, 100)->empty());
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::thread later([&] {
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 0);
  });
  const auto fresh = processes.threads_besides(own, known, 100);
  ASSERT_TRUE(fresh);
  EXPECT_EQ(fresh->size(), 1U);
  EXPECT_FALSE(processes.threads_besides(own, known, 1));
  ::close(ends[1]);
  later.join();
  ::close(ends[0]);
}

}  // namespace
}  // namespace apusched::platform
