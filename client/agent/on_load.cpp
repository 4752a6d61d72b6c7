// SPDX-License-Identifier: MIT
/// What ROCr calls when it loads the libraries named in HSA_TOOLS_LIB.
#include <pthread.h>

#include <cstdlib>
#include <new>

#include "agent/agent.hpp"
#include "agent/hooks.hpp"

#define APUSCHED_EXPORT __attribute__((visibility("default")))

namespace apusched::agent {
namespace {

// Owned here, used by the threads that load, unload, fork and exit. Neither is destroyed where a
// thread may still be in it: the library is never unmapped either (-z nodelete).
Host* host = nullptr;
Agent* running = nullptr;

std::atomic<bool> is_child{false};
std::atomic<bool> is_ending{false};
bool registered = false;

void in_child() {
  is_child = true;
  if (host == nullptr) return;
  // The locks may be held for ever by threads that are not here.
  host->active = false;
  host->gate.close_until(Nanoseconds{0});
  if (running != nullptr) running->leave_to_parent();
}

// The runtime's own objects are destroyed after this, and the agent must not be in a call then.
void at_exit() {
  if (host == nullptr || is_child || is_ending.exchange(true)) return;
  host->active = false;
  if (running != nullptr) running->stop(true);
}

bool register_handlers() {
  if (registered) return true;
  if (pthread_atfork(nullptr, nullptr, in_child) != 0 || std::atexit(at_exit) != 0) return false;
  registered = true;
  return true;
}

agent_abi::Hello hello_of(const Host& facts) {
  agent_abi::Hello hello{};
  hello.magic = agent_abi::kMagic;
  hello.version = agent_abi::kVersion;
  hello.size = sizeof hello;
  hello.features = features_of(facts.runtime);
  hello.runtime_version = runtime_version(facts.runtime);
  hello.core_table_bytes = facts.tables.core_bytes;
  hello.amd_table_bytes = facts.tables.amd_bytes;
  hello.gpu_count = static_cast<std::uint32_t>(facts.gpus.count);
  for (std::size_t i = 0; i < facts.gpus.count; i++) hello.gpus[i] = facts.gpus.list[i].facts;
  return hello;
}

void attach(const Tables& tables) {
  if (host == nullptr) host = new Host;
  host->queues.reset();
  host->memory.reset();
  host->gate.reset();
  host->tables = tables;
  host->runtime = runtime_of(tables);
  host->gpus = find_gpus(host->runtime);
  if (host->gpus.count == 0) return;
  auto* agent = new Agent(*host, read_environment(), hello_of(*host), at_exit);
  if (!agent->start()) {
    delete agent;
    return;
  }
  running = agent;
  host->active = true;
  install_hooks(*host);
}

void detach() {
  if (running == nullptr || is_child) return;
  host->active = false;
  remove_hooks();
  if (is_ending.exchange(true)) return;
  running->stop(false);
  delete running;
  running = nullptr;
  is_ending = false;
}

}  // namespace
}  // namespace apusched::agent

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): the names are ROCr's.

// Newer versions of ROCr look for this in libraries that are loaded already (LD_PRELOAD), and load
// tools in this order.
APUSCHED_EXPORT extern const std::uint32_t HSA_AMD_TOOL_PRIORITY;
const std::uint32_t HSA_AMD_TOOL_PRIORITY = 50;

APUSCHED_EXPORT void OnUnload();
APUSCHED_EXPORT bool OnLoad(HsaApiTable* table, std::uint64_t runtime_version,
                            std::uint64_t failed_tool_count, const char* const* failed_tools);

// Always true: ROCr 5.2 closes a library that answers false twice, and what could not be done is
// no concern of the program's.
bool OnLoad(HsaApiTable* table, std::uint64_t, std::uint64_t, const char* const*) {
  using namespace apusched::agent;
  Tables tables;
  // Named twice in HSA_TOOLS_LIB: the first time counts.
  if (running != nullptr || is_child || is_ending || !open_tables(table, &tables) ||
      hooked_by_another_copy(tables))
    return true;
  try {
    if (register_handlers()) attach(tables);
  } catch (...) {
    // no memory: the program goes on without
  }
  return true;
}

void OnUnload() {
  apusched::agent::detach();
}

// NOLINTEND(readability-identifier-naming)
}  // extern "C"
