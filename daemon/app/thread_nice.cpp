// SPDX-License-Identifier: MIT
#include "app/thread_nice.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace apusched::app {
namespace {

/// More threads may be born while we write; each pass catches those of the one before.
constexpr int kPasses = 3;
constexpr std::uint32_t kRestoreLimit = 1U << 20;

std::optional<core::Nice> nice_of(const std::optional<core::LeverValue>& value) {
  if (!value) return std::nullopt;
  const auto* nice = std::get_if<core::Nice>(&*value);
  return nice != nullptr ? std::optional(*nice) : std::nullopt;
}

}  // namespace

ThreadNice::ThreadNice(ports::ProcessSource& processes, ports::Scheduler& scheduler,
                       LedgerBook& book, ports::Report& report, const core::Limits& limits,
                       bool dry_run)
    : processes_(processes),
      scheduler_(scheduler),
      book_(book),
      report_(report),
      limits_(limits),
      dry_run_(dry_run) {}

core::Result<NiceSummary> ThreadNice::apply(NiceState& state, core::RegistrationId holder,
                                            core::Nice wish) {
  NiceSummary summary;
  std::set<core::Tid> seen;
  auto threads = look(state);
  if (threads) forget_dead(state, *threads);
  for (int i = 0; i < kPasses; ++i) {
    if (!threads) return tl::unexpected(threads.error());
    auto pass = examine(state, *threads, wish);
    const bool wrote = !pass.fresh.empty() && !dry_run_;
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

core::Result<std::vector<ports::ThreadFacts>> ThreadNice::look(NiceState& state) {
  const auto limit = limits_.max_threads_per_process;
  const auto main = std::exchange(state.just_read, std::nullopt);
  if (!main) return processes_.threads(state.process.pid, limit);
  auto threads = processes_.threads_besides(state.process.pid, {main->key.tid}, limit);
  if (threads) threads->push_back(*main);
  return threads;
}

ThreadNice::Pass ThreadNice::examine(NiceState& state,
                                     const std::vector<ports::ThreadFacts>& threads,
                                     core::Nice wish) {
  Pass pass;
  pass.summary.threads = static_cast<std::uint32_t>(threads.size());
  for (const auto& thread : threads) {
    if (!state.known.contains(thread.key)) {
      // Born with neither the boost nor its creator's original: it was set on purpose since.
      // A reset to 0 is no such sign, SCHED_RESET_ON_FORK does that to a negative nice.
      const bool reset_on_fork = thread.nice.value() == 0 && wish.value() < 0;
      const bool own_choice = state.inherited && thread.nice != wish &&
                              thread.nice != *state.inherited && !reset_on_fork;
      if (own_choice)
        ++pass.summary.contended;
      else
        pass.fresh.push_back(thread);
      continue;
    }
    const auto resource = core::thread_resource(thread.key);
    const auto* entry = book_.ledger().find(resource);
    if (entry != nullptr && !entry->contended && thread.nice != wish)
      book_.note_contended(resource);
    if (thread.nice == wish)
      ++pass.summary.applied;
    else
      ++pass.summary.contended;
  }
  return pass;
}

core::Result<void> ThreadNice::boost(NiceState& state, core::RegistrationId holder, core::Nice wish,
                                     Pass& pass) {
  const bool first = !state.inherited;
  std::vector<LedgerBook::Hold> holds;
  for (const auto& thread : pass.fresh)
    holds.push_back({core::thread_resource(thread.key),
                     {holder, wish},
                     first ? thread.nice : *state.inherited,
                     state.process});
  if (auto recorded = book_.hold(holds); !recorded) return recorded;
  if (state.since == core::StartTime{}) state.since = processes_.now();
  if (first) {
    // Threads born later are taken to be the main thread's: the kernel does not tell a thread's
    // creator, and in a process whose threads all began alike it makes no difference.
    const auto leader = std::ranges::find_if(pass.fresh, [&](const auto& thread) {
      return thread.key.tid.value() == state.process.pid.value();
    });
    state.inherited = leader != pass.fresh.end() ? leader->nice : pass.fresh.front().nice;
  }
  for (const auto& thread : pass.fresh) {
    const auto resource = core::thread_resource(thread.key);
    const auto done = scheduler_.set_thread_nice(thread.key.tid, wish);
    if (done) {
      state.known.insert(thread.key);
      book_.note_written(resource, wish);
      read_back(thread.key.tid, resource, wish, pass.summary);
      continue;
    }
    book_.forget({resource});
    if (done.error().code != core::ErrorCode::gone && !pass.summary.first_error)
      pass.summary.first_error = done.error();
  }
  // A thread that refuses would be fresh in every pass: one refusal ends the application.
  if (pass.summary.first_error) return tl::unexpected(*pass.summary.first_error);
  return {};
}

void ThreadNice::read_back(core::Tid tid, const core::ResourceKey& resource, core::Nice wish,
                           NiceSummary& summary) {
  const auto found = scheduler_.thread_nice(tid);
  if (!found) return;  // it has exited
  if (*found == wish) {
    ++summary.applied;
  } else {
    book_.note_contended(resource);
    ++summary.contended;
  }
}

void ThreadNice::forget_dead(NiceState& state, const std::vector<ports::ThreadFacts>& threads) {
  std::set<core::ThreadKey> alive;
  for (const auto& thread : threads) alive.insert(thread.key);
  std::vector<core::ResourceKey> dead;
  std::erase_if(state.known, [&](const core::ThreadKey& thread) {
    if (alive.contains(thread)) return false;
    dead.push_back(core::thread_resource(thread));
    return true;
  });
  book_.forget(dead);
}

void ThreadNice::put_back(const ports::ThreadFacts& thread, core::Nice original) {
  const auto done = scheduler_.set_thread_nice(thread.key.tid, original);
  if (!done && done.error().code != core::ErrorCode::gone)
    report_.warning(core::to_sentence(done.error()) + ", left as it is");
}

std::set<core::ThreadKey> ThreadNice::put_threads_back(NiceState& state, core::Nice wish) {
  std::set<core::ThreadKey> settled;
  const auto threads = processes_.threads(state.process.pid, kRestoreLimit);
  if (threads && !dry_run_) {
    for (const auto& thread : *threads) {
      settled.insert(thread.key);
      if (thread.nice != wish) continue;  // changed by somebody else since, or never ours
      const auto* entry = book_.ledger().find(core::thread_resource(thread.key));
      const auto original = entry != nullptr ? nice_of(entry->original) : state.inherited;
      if (original) put_back(thread, *original);
    }
  }
  std::vector<core::ResourceKey> keys;
  for (const auto& thread : state.known) keys.push_back(core::thread_resource(thread));
  book_.forget(keys);
  state.known.clear();
  return settled;
}

void ThreadNice::release_exited(NiceState& state, core::Nice wish) {
  put_threads_back(state, wish);
}

void ThreadNice::release(NiceState& state, core::Nice wish) {
  auto settled = put_threads_back(state, wish);
  if (dry_run_ || !state.inherited) return;
  const Inheritance inheritance{wish, *state.inherited, state.since};
  disinherit_descendants(state.process.pid, inheritance);
  stragglers_.push_back({state.process, inheritance, std::move(settled)});
}

void ThreadNice::look_again(const Straggling& straggling) {
  const auto& [parent, inheritance, settled] = straggling;
  const auto identity = processes_.identity(parent.pid);
  if (!identity || identity->key != parent) return;
  disinherit_threads(parent.pid, inheritance, settled);
  disinherit_descendants(parent.pid, inheritance);
}

bool ThreadNice::look_for_stragglers(core::Nice nice) {
  const auto with = [&](const Straggling& s) { return s.inheritance.wish == nice; };
  if (std::ranges::none_of(stragglers_, with)) return false;
  for (const auto& straggling : stragglers_)
    if (with(straggling)) look_again(straggling);
  return true;
}

void ThreadNice::settle_stragglers(std::size_t count) {
  for (; count > 0 && !stragglers_.empty(); --count) {
    look_again(stragglers_.front());
    stragglers_.pop_front();
  }
}

void ThreadNice::disinherit(core::Pid child, const Inheritance& inheritance) {
  if (dry_run_) return;
  const auto identity = processes_.identity(child);
  if (!identity || identity->key.start < inheritance.since) return;
  disinherit_threads(child, inheritance, {});
}

void ThreadNice::disinherit_threads(core::Pid pid, const Inheritance& inheritance,
                                    const std::set<core::ThreadKey>& settled) {
  const auto threads = processes_.threads(pid, kRestoreLimit);
  if (!threads) return;
  for (const auto& thread : *threads) {
    // In the ledger: covered by itself, it has its own turn.
    if (book_.ledger().find(core::thread_resource(thread.key)) != nullptr) continue;
    if (thread.nice == inheritance.wish && !settled.contains(thread.key))
      put_back(thread, inheritance.original);
  }
}

void ThreadNice::disinherit_descendants(core::Pid parent, const Inheritance& inheritance) {
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

void ThreadNice::restore_leftovers() {
  std::map<core::ProcessKey, std::vector<core::ResourceKey>> by_process;
  std::vector<core::ResourceKey> all;
  for (const auto& [key, entry] : book_.ledger().entries()) {
    if (key.kind != core::LeverKind::nice || !entry.holders.empty()) continue;
    all.push_back(key);
    if (entry.process) by_process[*entry.process].push_back(key);
  }
  for (const auto& [process, keys] : by_process) restore_process(process, keys);
  book_.forget(all);
}

void ThreadNice::restore_process(const core::ProcessKey& process,
                                 const std::vector<core::ResourceKey>& keys) {
  const auto facts = processes_.facts(process.pid);
  if (!facts || facts->key != process) return;
  const auto* leader = book_.ledger().find(
      core::thread_resource({*core::Tid::make(process.pid.value()), process.start}));
  const auto* any = leader != nullptr ? leader : book_.ledger().find(keys.front());
  const auto wish = nice_of(any->intended ? any->intended : any->written);
  const auto original = nice_of(any->original);
  if (!wish || !original) return;
  // When the boost began is not known any more; no child is older than its parent.
  NiceState state{process, original, process.start, {}, {}};
  release(state, *wish);
  report_.restored("nice of process " + core::to_string(process.pid), core::to_string(*original));
}

}  // namespace apusched::app
