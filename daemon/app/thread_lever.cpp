// SPDX-License-Identifier: MIT
#include "app/thread_lever.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace apusched::app {
namespace {

/// More threads may be born while we write; each pass catches those of the one before.
constexpr int kPasses = 3;
constexpr std::uint32_t kRestoreLimit = 1U << 20;

bool holds_value(const std::vector<core::LeverValue>& values, const core::LeverValue& value) {
  return std::ranges::find(values, value) != values.end();
}

}  // namespace

void add_to(core::Result<ThreadSummary>& total, const core::Result<ThreadSummary>& one) {
  if (!total || (!one && one.error().code == core::ErrorCode::gone)) return;
  if (!one) {
    total = one;
    return;
  }
  total->applied += one->applied;
  total->contended += one->contended;
}

ThreadLever::ThreadLever(ThreadValue& value, ports::ProcessSource& processes, LedgerBook& book,
                         ports::Report& report, const core::Limits& limits, bool dry_run)
    : value_(value),
      processes_(processes),
      book_(book),
      report_(report),
      limits_(limits),
      dry_run_(dry_run) {}

core::ResourceKey ThreadLever::key(const core::ThreadKey& thread) const {
  return core::thread_resource(value_.kind(), thread);
}

core::Result<ThreadSummary> ThreadLever::apply(ThreadState& state, core::RegistrationId holder,
                                               const core::LeverValue& wish,
                                               const std::vector<ports::ThreadFacts>* listed) {
  ThreadSummary summary;
  std::set<core::Tid> seen;
  auto threads = listed != nullptr ? *listed : look(state);
  if (threads) forget_dead(state, *threads);
  for (int i = 0; i < kPasses; ++i) {
    if (!threads) return tl::unexpected(threads.error());
    auto pass = examine(state, *threads, wish);
    const bool wrote = !pass.empty() && !dry_run_;
    if (wrote)
      if (auto done = boost(state, holder, wish, pass); !done) return tl::unexpected(done.error());
    summary.threads += pass.summary.threads;
    summary.applied += pass.summary.applied;
    summary.contended += pass.summary.contended;
    if (!wrote) break;
    for (const auto& thread : *threads) seen.insert(thread.key.tid);
    threads = processes_.threads_besides(state.process.pid, seen, limits_.max_threads_per_process);
  }
  return summary;
}

core::Result<std::vector<ports::ThreadFacts>> ThreadLever::look(ThreadState& state) {
  const auto limit = limits_.max_threads_per_process;
  const auto main = std::exchange(state.just_read, std::nullopt);
  if (!main) return processes_.threads(state.process.pid, limit);
  auto threads = processes_.threads_besides(state.process.pid, {main->key.tid}, limit);
  if (threads) threads->push_back(*main);
  return threads;
}

ThreadLever::Pass ThreadLever::examine(ThreadState& state,
                                       const std::vector<ports::ThreadFacts>& threads,
                                       const core::LeverValue& wish) {
  Pass pass;
  pass.summary.threads = static_cast<std::uint32_t>(threads.size());
  for (const auto& thread : threads) {
    const auto found = value_.of(thread);
    if (!found) continue;  // it has exited
    if (state.known.contains(thread.key)) {
      examine_known(thread.key, *found, wish, pass);
      continue;
    }
    // Born with neither the boost nor its creator's original: it was set on purpose since. What
    // the kernel resets when a thread is cloned is no such sign.
    const bool own_choice = state.inherited && *found != wish && !holds_value(state.ours, *found) &&
                            *found != *state.inherited && !value_.is_reset(*found, wish);
    if (own_choice || value_.is_reserved(*found))
      ++pass.summary.contended;
    else
      pass.fresh.push_back({thread, *found});
  }
  return pass;
}

void ThreadLever::examine_known(const core::ThreadKey& thread, const core::LeverValue& found,
                                const core::LeverValue& wish, Pass& pass) {
  if (found == wish) {
    ++pass.summary.applied;
    return;
  }
  const auto resource = key(thread);
  const auto* entry = book_.ledger().find(resource);
  if (entry != nullptr && !entry->contended && entry->written == found) {
    pass.again.push_back(thread);
    return;
  }
  if (entry != nullptr && !entry->contended) book_.note_contended(resource);
  ++pass.summary.contended;
}

core::Result<void> ThreadLever::boost(ThreadState& state, core::RegistrationId holder,
                                      const core::LeverValue& wish, Pass& pass) {
  if (auto recorded = record(state, holder, wish, pass); !recorded) return recorded;
  if (state.since == core::StartTime{}) state.since = processes_.now();
  if (!holds_value(state.ours, wish)) state.ours.push_back(wish);
  if (!state.inherited) {
    // Threads born later are taken to be the main thread's: the kernel does not tell a thread's
    // creator, and in a process whose threads all began alike it makes no difference.
    const auto leader = std::ranges::find_if(pass.fresh, [&](const auto& fresh) {
      return fresh.thread.key.tid.value() == state.process.pid.value();
    });
    state.inherited = leader != pass.fresh.end() ? leader->found : pass.fresh.front().found;
  }
  for (const auto& fresh : pass.fresh) write(state, fresh.thread.key, wish, true, pass.summary);
  for (const auto& thread : pass.again) write(state, thread, wish, false, pass.summary);
  // A thread that refuses would be fresh in every pass: one refusal ends the application.
  if (pass.summary.first_error) return tl::unexpected(*pass.summary.first_error);
  return {};
}

core::Result<void> ThreadLever::record(ThreadState& state, core::RegistrationId holder,
                                       const core::LeverValue& wish, const Pass& pass) {
  std::vector<LedgerBook::Hold> holds;
  for (const auto& fresh : pass.fresh)
    holds.push_back({key(fresh.thread.key),
                     {holder, wish},
                     state.inherited.value_or(fresh.found),
                     state.process});
  for (const auto& thread : pass.again)
    holds.push_back(
        {key(thread), {holder, wish}, book_.ledger().find(key(thread))->original, state.process});
  return book_.hold(holds);
}

void ThreadLever::write(ThreadState& state, const core::ThreadKey& thread,
                        const core::LeverValue& wish, bool is_fresh, ThreadSummary& summary) {
  const auto resource = key(thread);
  if (const auto done = value_.write(thread.tid, wish); !done) {
    const bool is_gone = done.error().code == core::ErrorCode::gone;
    // What an earlier write changed has still to be undone.
    if (is_fresh || is_gone)
      book_.forget({resource});
    else
      book_.drop_intention(resource);
    if (is_gone)
      state.known.erase(thread);
    else if (!summary.first_error)
      summary.first_error = done.error();
    return;
  }
  state.known.insert(thread);
  book_.note_written(resource, wish);
  const auto back = value_.read(thread.tid);
  if (!back) return;  // it has exited
  if (*back == wish) {
    ++summary.applied;
  } else {
    book_.note_contended(resource);
    ++summary.contended;
  }
}

void ThreadLever::forget_dead(ThreadState& state, const std::vector<ports::ThreadFacts>& threads) {
  std::set<core::ThreadKey> alive;
  for (const auto& thread : threads) alive.insert(thread.key);
  std::vector<core::ResourceKey> dead;
  std::erase_if(state.known, [&](const core::ThreadKey& thread) {
    if (alive.contains(thread)) return false;
    dead.push_back(key(thread));
    return true;
  });
  book_.forget(dead);
}

void ThreadLever::put_back(core::Tid tid, const core::LeverValue& original) {
  const auto done = value_.write(tid, original);
  if (!done && done.error().code != core::ErrorCode::gone)
    report_.warning(core::to_sentence(done.error()) + ", left as it is");
}

std::set<core::ThreadKey> ThreadLever::put_threads_back(ThreadState& state) {
  std::set<core::ThreadKey> settled;
  const auto threads = processes_.threads(state.process.pid, kRestoreLimit);
  if (threads && !dry_run_) {
    for (const auto& thread : *threads) {
      settled.insert(thread.key);
      const auto found = value_.of(thread);
      if (!found) continue;
      const auto* entry = book_.ledger().find(key(thread.key));
      const bool is_ours = entry != nullptr ? entry->written == *found || entry->intended == *found
                                            : holds_value(state.ours, *found);
      if (!is_ours) continue;  // changed by somebody else since, or never ours
      const auto original = entry != nullptr ? std::optional(entry->original) : state.inherited;
      if (original) put_back(thread.key.tid, *original);
    }
  }
  std::vector<core::ResourceKey> keys;
  for (const auto& thread : state.known) keys.push_back(key(thread));
  book_.forget(keys);
  state.known.clear();
  return settled;
}

void ThreadLever::release_exited(ThreadState& state) {
  put_threads_back(state);
}

void ThreadLever::release(ThreadState& state) {
  auto settled = put_threads_back(state);
  if (dry_run_ || !state.inherited) return;
  const Inheritance inheritance{state.ours, *state.inherited, state.since};
  disinherit_descendants(state.process.pid, inheritance);
  stragglers_.push_back({state.process, inheritance, std::move(settled)});
}

void ThreadLever::look_again(const Straggling& straggling) {
  const auto& [parent, inheritance, settled] = straggling;
  const auto identity = processes_.identity(parent.pid);
  if (!identity || identity->key != parent) return;
  disinherit_threads(parent.pid, inheritance, settled);
  disinherit_descendants(parent.pid, inheritance);
}

bool ThreadLever::is_one_of(const ports::ThreadFacts& thread,
                            const std::vector<core::LeverValue>& values) {
  if (values.empty()) return false;
  const auto found = value_.of(thread);
  return found && holds_value(values, *found);
}

bool ThreadLever::look_for_stragglers(const ports::ThreadFacts& thread) {
  const auto with = [&](const Straggling& s) { return is_one_of(thread, s.inheritance.ours); };
  if (std::ranges::none_of(stragglers_, with)) return false;
  for (const auto& straggling : stragglers_)
    if (with(straggling)) look_again(straggling);
  return true;
}

void ThreadLever::settle_stragglers(std::size_t count) {
  for (; count > 0 && !stragglers_.empty(); --count) {
    look_again(stragglers_.front());
    stragglers_.pop_front();
  }
}

void ThreadLever::disinherit(core::Pid child, const Inheritance& inheritance) {
  if (dry_run_) return;
  const auto identity = processes_.identity(child);
  if (!identity || identity->key.start < inheritance.since) return;
  disinherit_threads(child, inheritance, {});
}

void ThreadLever::disinherit_threads(core::Pid pid, const Inheritance& inheritance,
                                     const std::set<core::ThreadKey>& settled) {
  const auto threads = processes_.threads(pid, kRestoreLimit);
  if (!threads) return;
  for (const auto& thread : *threads) {
    // In the ledger: covered by itself, it has its own turn.
    if (book_.ledger().find(key(thread.key)) != nullptr) continue;
    if (!settled.contains(thread.key) && is_one_of(thread, inheritance.ours))
      put_back(thread.key.tid, inheritance.original);
  }
}

void ThreadLever::disinherit_descendants(core::Pid parent, const Inheritance& inheritance) {
  std::vector<core::Pid> waiting{parent};
  std::set<core::Pid> seen{parent};
  while (!waiting.empty() && seen.size() <= limits_.max_members) {
    const auto pid = waiting.back();
    waiting.pop_back();
    const auto children = processes_.children(pid);
    if (!children) continue;
    for (const auto child : *children) {
      if (!seen.insert(child).second) continue;
      disinherit(child, inheritance);
      waiting.push_back(child);
    }
  }
}

void ThreadLever::restore_leftovers() {
  std::map<core::ProcessKey, std::vector<core::ResourceKey>> by_process;
  std::vector<core::ResourceKey> all;
  for (const auto& [resource, entry] : book_.ledger().entries()) {
    if (resource.kind != value_.kind() || !entry.holders.empty()) continue;
    all.push_back(resource);
    if (entry.process) by_process[*entry.process].push_back(resource);
  }
  for (const auto& [process, keys] : by_process) restore_process(process, keys);
  book_.forget(all);
}

void ThreadLever::restore_process(const core::ProcessKey& process,
                                  const std::vector<core::ResourceKey>& keys) {
  const auto facts = processes_.facts(process.pid);
  if (!facts || facts->key != process) return;
  const auto* leader =
      book_.ledger().find(key({*core::Tid::make(process.pid.value()), process.start}));
  const auto* any = leader != nullptr ? leader : book_.ledger().find(keys.front());
  // When the boost began is not known any more; no child is older than its parent.
  ThreadState state{process, any->original, process.start, {}, {}, {}};
  for (const auto& resource : keys) {
    const auto* entry = book_.ledger().find(resource);
    for (const auto& value : {entry->written, entry->intended})
      if (value && !holds_value(state.ours, *value)) state.ours.push_back(*value);
  }
  if (state.ours.empty()) return;
  release(state);
  report_.restored(
      std::string(core::to_string(value_.kind())) + " of process " + core::to_string(process.pid),
      core::to_string(any->original));
}

}  // namespace apusched::app
