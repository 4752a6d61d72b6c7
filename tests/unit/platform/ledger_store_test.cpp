// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "platform/file_ledger_store.hpp"
#include "platform/ledger_text.hpp"

namespace apusched::platform {
namespace {

using core::LeverKind;
const core::ResourceKey kUnit{LeverKind::cpu_weight, "llama.service"};
const core::ResourceKey kThread{LeverKind::nice, "42:777"};

core::LedgerEntry unit_entry() {
  return {core::Weight(), *core::Weight::make(500), {}, {}, false, {}, true};
}
core::LedgerEntry thread_entry() {
  return {core::Nice::of<5>(),
          {},
          core::Nice::of<-10>(),
          {},
          true,
          core::ProcessKey{core::Pid::of<42>(), {777}},
          false};
}

class LedgerFile : public ::testing::Test {
 protected:
  LedgerFile() {
    std::string name = "/tmp/apusched-ledger-XXXXXX";
    dir_ = ::mkdtemp(name.data());
  }
  ~LedgerFile() override { std::filesystem::remove_all(dir_); }
  std::unique_ptr<FileLedgerStore> open() {
    auto store = FileLedgerStore::open(dir_);
    EXPECT_TRUE(store) << (store ? "" : core::to_sentence(store.error()));
    return store ? std::move(*store) : nullptr;
  }
  core::Ledger reopened() {
    const auto store = open();
    const auto ledger = store->load();
    EXPECT_TRUE(ledger);
    return *ledger;
  }
  void append(const std::string& text) { std::ofstream(dir_ + "/ledger", std::ios::app) << text; }
  std::string content() {
    std::ostringstream text;
    text << std::ifstream(dir_ + "/ledger").rdbuf();
    return text.str();
  }
  void fill() {
    const auto store = open();
    ASSERT_TRUE(store->load());
    ASSERT_TRUE(store->put_all({{kUnit, unit_entry()}, {kThread, thread_entry()}}));
  }
  std::string dir_;
};

TEST_F(LedgerFile, gives_back_every_field_after_a_crash) {
  fill();
  const auto ledger = reopened();
  ASSERT_EQ(ledger.size(), 2U);
  EXPECT_EQ(*ledger.find(kUnit), unit_entry());
  EXPECT_EQ(*ledger.find(kThread), thread_entry());
}

TEST_F(LedgerFile, keeps_an_energy_preference_in_the_form_that_it_had) {
  const core::ResourceKey policy{LeverKind::energy_preference, "policy4"};
  const core::LedgerEntry entry{*core::EnergyPreference::parse("96"),
                                core::EnergyPreference(core::EnergyWord::power),
                                {},
                                {},
                                false,
                                {},
                                false};
  {
    const auto store = open();
    ASSERT_TRUE(store->load());
    ASSERT_TRUE(store->put(policy, entry));
  }
  EXPECT_NE(content().find(R"("original":"96","written":"power")"), std::string::npos);
  const auto ledger = reopened();
  ASSERT_NE(ledger.find(policy), nullptr);
  EXPECT_EQ(*ledger.find(policy), entry);
  append(R"({"v":1,"kind":"energy_preference","id":"policy5","original":"slow"})"
         "\n");
  EXPECT_EQ(reopened().size(), 1U);
}

TEST_F(LedgerFile, forgets_what_was_erased) {
  fill();
  {
    const auto store = open();
    ASSERT_TRUE(store->load());
    ASSERT_TRUE(store->erase({kUnit}));
  }
  const auto ledger = reopened();
  EXPECT_EQ(ledger.find(kUnit), nullptr);
  EXPECT_NE(ledger.find(kThread), nullptr);
}

TEST_F(LedgerFile, a_torn_last_line_costs_that_record_alone) {
  fill();
  append(R"({"v":1,"kind":"nice","id":"43:7","original":"0","wri)");
  EXPECT_EQ(reopened().size(), 2U);
}

TEST_F(LedgerFile, garbage_lines_are_passed_over) {
  fill();
  append(
      "\n\xff\xfe\n[]\n{}\nnull\n{\"v\":2,\"boot\":\"x\"}\n"
      "{\"v\":1,\"kind\":\"nice\",\"id\":\"\",\"original\":\"0\"}\n"
      "{\"v\":1,\"kind\":\"nice\",\"id\":\"9:9\",\"original\":\"99\"}\n"
      "{\"v\":1,\"kind\":\"nice\",\"id\":7,\"original\":\"0\"}\n"
      "{\"v\":1,\"kind\":\"warp\",\"id\":\"9:9\",\"original\":\"0\"}\n");
  EXPECT_EQ(reopened().size(), 2U);
}

TEST_F(LedgerFile, a_record_of_another_boot_means_nothing) {
  { ASSERT_TRUE(open()->load()); }
  std::ofstream(dir_ + "/ledger", std::ios::trunc)
      << format_line(LedgerHeader{"another-boot"}) << format_line(LedgerPut{kUnit, unit_entry()});
  EXPECT_EQ(reopened().size(), 0U);
}

TEST_F(LedgerFile, has_one_owner_at_a_time) {
  const auto first = open();
  const auto second = FileLedgerStore::open(dir_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, core::ErrorCode::contended);
}

TEST_F(LedgerFile, refuses_a_directory_that_others_may_write_to) {
  ASSERT_EQ(::chmod(dir_.c_str(), 0777), 0);
  const auto store = FileLedgerStore::open(dir_);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, core::ErrorCode::denied);
}

TEST_F(LedgerFile, refuses_a_ledger_that_is_a_symbolic_link) {
  std::filesystem::create_symlink("/tmp/elsewhere", dir_ + "/ledger");
  EXPECT_FALSE(FileLedgerStore::open(dir_));
}

TEST_F(LedgerFile, does_not_grow_for_ever) {
  const auto store = open();
  ASSERT_TRUE(store->load());
  for (int i = 0; i < 20000; ++i) {
    auto entry = unit_entry();
    entry.written = *core::Weight::make(1 + i % 9999);
    ASSERT_TRUE(store->put(kUnit, entry));
  }
  EXPECT_LT(content().size(), 600U * 1024);
}

TEST_F(LedgerFile, an_unchanged_record_is_not_written_again) {
  const auto store = open();
  ASSERT_TRUE(store->load());
  ASSERT_TRUE(store->put(kUnit, unit_entry()));
  const auto size = content().size();
  ASSERT_TRUE(store->put(kUnit, unit_entry()));
  EXPECT_EQ(content().size(), size);
}

}  // namespace
}  // namespace apusched::platform
