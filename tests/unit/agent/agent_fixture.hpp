// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "doubles/fake_agent_daemon.hpp"
#include "doubles/fake_hsa.hpp"

extern "C" {
bool OnLoad(HsaApiTable* table, std::uint64_t runtime_version, std::uint64_t failed_tool_count,
            const char* const* failed_tools);
void OnUnload();
}

namespace apusched::agent {

using agent_abi::Applied;
using fake::eventually;
using fake::hsa;

/// The whole library, loaded by a runtime that is a double, with a daemon that is a double.
class AgentTest : public testing::Test {
 protected:
  void SetUp() override {
    hsa().reset();
    set("APUSCHED_AGENT_SOCKET", daemon_.path());
    set("APUSCHED_AGENT_WAIT_MS", "1000");
    for (const char* name :
         {"APUSCHED_SERIAL", "APUSCHED_QUEUE_LIMIT", "APUSCHED_MEMORY_LIMIT_MIB"})
      unsetenv(name);
  }
  void TearDown() override {
    unload();
    EXPECT_EQ(hsa().violations, 0U);
  }

  static void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }
  void load() {
    EXPECT_TRUE(OnLoad(hsa().table(), 1, 0, nullptr));
    is_loaded_ = true;
  }
  void unload() {
    if (is_loaded_) OnUnload();
    is_loaded_ = false;
  }
  /// Loaded, with a daemon that has said welcome.
  void attach() {
    daemon_.listen();
    load();
    peer_ = daemon_.accept();
    ASSERT_TRUE(peer_);
    peer_->welcome();
    peer_->settled();
  }
  static std::uint32_t mask_of(const hsa_queue_t* queue) {
    const auto words = hsa().mask_of(queue);
    return words.empty() ? 0 : words[0];
  }
  static Applied applied(const agent_abi::Setting& setting) {
    return static_cast<Applied>(setting.applied);
  }

  fake::FakeAgentDaemon daemon_;
  std::unique_ptr<fake::AgentPeer> peer_;

 private:
  bool is_loaded_ = false;
};

}  // namespace apusched::agent
