// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/ledger_book.hpp"
#include "app/thread_value.hpp"
#include "core/config.hpp"
#include "ports/processes.hpp"

namespace apusched::app {

/// The threads of one process as far as one value is concerned. Owner: the registration's member.
struct ThreadState {
  core::ProcessKey process;
  /// What a thread born from now on would have had without us: its creator's original, never
  /// what is read back. Unknown until the first application, unless handed down by a parent.
  std::optional<core::LeverValue> inherited = {};
  /// When the first of our values came into force: who was born before inherited none.
  core::StartTime since = {};
  std::set<core::ThreadKey> known = {};
  /// The main thread as it was a moment ago, which spares the first application a read.
  std::optional<ports::ThreadFacts> just_read = {};
  /// Every value that was asked for: what a thread born meanwhile may have been born with.
  std::vector<core::LeverValue> ours = {};
};

/// What a child born of a boosted process carries.
struct Inheritance {
  std::vector<core::LeverValue> ours;  ///< values it may have been born with
  core::LeverValue original;           ///< the value it would have had
  core::StartTime since;
};

struct ThreadSummary {
  std::uint32_t threads = 0;
  std::uint32_t applied = 0;
  std::uint32_t contended = 0;
  std::optional<core::Error> first_error;
};

/// Sums up over processes; the first failure stays. One that is gone tells by its pidfd.
void add_to(core::Result<ThreadSummary>& total, const core::Result<ThreadSummary>& one);

/// One value on every thread of a process: each thread is recorded, written, and restored by
/// itself. Owner of the stragglers; event-loop thread.
class ThreadLever {
 public:
  ThreadLever(ThreadValue& value, ports::ProcessSource& processes, LedgerBook& book,
              ports::Report& report, const core::Limits& limits, bool dry_run);

  /// Brings all threads, also those born since the last call, to `wish`, which may be another one
  /// than last time. Threads whose value was changed by somebody else are left alone and counted
  /// as contended. `threads` is a list made a moment ago, or null.
  [[nodiscard]] core::Result<ThreadSummary> apply(
      ThreadState& state, core::RegistrationId holder, const core::LeverValue& wish,
      const std::vector<ports::ThreadFacts>* threads = nullptr);
  /// Gives every thread its own original back, and what threads and descendants born since the
  /// last scan inherited. A clone under way has copied the boost but is in no list yet (linux
  /// kernel/fork.c, copy_process: sched_fork comes long before list_add_tail): remembered for
  /// settle_stragglers().
  void release(ThreadState& state);
  /// The same for a process that has exited and whose children live on: they are left alone.
  void release_exited(ThreadState& state);
  /// A process that inherited a boost at fork but is not covered: back to what it would have had.
  /// One that is older than the boost has its value by somebody's choice, and is left alone.
  void disinherit(core::Pid child, const Inheritance& inheritance);
  /// The same for every descendant of a process.
  void disinherit_descendants(core::Pid parent, const Inheritance& inheritance);
  /// True where this thread may have been born with one of those values.
  [[nodiscard]] bool is_one_of(const ports::ThreadFacts& thread,
                               const std::vector<core::LeverValue>& values);
  /// Looks for what those remembered left behind, where this thread may have it; false if not.
  bool look_for_stragglers(const ports::ThreadFacts& thread);
  /// Looks at the first `count` remembered for the last time, and forgets them.
  void settle_stragglers(std::size_t count);
  [[nodiscard]] std::size_t stragglers() const { return stragglers_.size(); }
  /// Restores what an earlier run left behind.
  void restore_leftovers();

 private:
  struct Straggling {
    core::ProcessKey parent;
    Inheritance inheritance;
    std::set<core::ThreadKey> settled;  ///< threads that have their own original
  };
  struct Pass {
    struct Fresh {
      ports::ThreadFacts thread;
      core::LeverValue found;
    };
    std::vector<Fresh> fresh;
    std::vector<core::ThreadKey> again;  ///< ours already, with an earlier wish in force
    ThreadSummary summary;
    [[nodiscard]] bool empty() const { return fresh.empty() && again.empty(); }
  };
  [[nodiscard]] core::ResourceKey key(const core::ThreadKey& thread) const;
  [[nodiscard]] core::Result<std::vector<ports::ThreadFacts>> look(ThreadState& state);
  [[nodiscard]] Pass examine(ThreadState& state, const std::vector<ports::ThreadFacts>& threads,
                             const core::LeverValue& wish);
  void examine_known(const core::ThreadKey& thread, const core::LeverValue& found,
                     const core::LeverValue& wish, Pass& pass);
  [[nodiscard]] core::Result<void> boost(ThreadState& state, core::RegistrationId holder,
                                         const core::LeverValue& wish, Pass& pass);
  [[nodiscard]] core::Result<void> record(ThreadState& state, core::RegistrationId holder,
                                          const core::LeverValue& wish, const Pass& pass);
  void write(ThreadState& state, const core::ThreadKey& thread, const core::LeverValue& wish,
             bool is_fresh, ThreadSummary& summary);
  void forget_dead(ThreadState& state, const std::vector<ports::ThreadFacts>& threads);
  std::set<core::ThreadKey> put_threads_back(ThreadState& state);
  void put_back(core::Tid tid, const core::LeverValue& original);
  void look_again(const Straggling& straggling);
  void disinherit_threads(core::Pid pid, const Inheritance& inheritance,
                          const std::set<core::ThreadKey>& settled);
  void restore_process(const core::ProcessKey& process, const std::vector<core::ResourceKey>& keys);

  ThreadValue& value_;
  ports::ProcessSource& processes_;
  LedgerBook& book_;
  ports::Report& report_;
  const core::Limits& limits_;
  bool dry_run_;
  std::deque<Straggling> stragglers_;
};

}  // namespace apusched::app
