// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>

#include "app/ledger_book.hpp"
#include "core/config.hpp"
#include "ports/processes.hpp"
#include "ports/scheduler.hpp"

namespace apusched::app {

/// The threads of one process as far as nice is concerned. Owner: the registration's member.
struct NiceState {
  core::ProcessKey process;
  /// What a thread born from now on would have had without us: its creator's original, never
  /// what is read back. Unknown until the first application, unless handed down by a parent.
  std::optional<core::Nice> inherited;
  /// When the first of our values came into force: who was born before inherited none.
  core::StartTime since;
  std::set<core::ThreadKey> known;
  /// The main thread as it was a moment ago, which spares the first application a read.
  std::optional<ports::ThreadFacts> just_read;
};

/// What a child born of a boosted process carries.
struct Inheritance {
  core::Nice wish;      ///< the value it was born with
  core::Nice original;  ///< the value it would have had
  core::StartTime since;
};

struct NiceSummary {
  std::uint32_t threads = 0;
  std::uint32_t applied = 0;
  std::uint32_t contended = 0;
  std::optional<core::Error> first_error;
};

/// Nice on every thread of a process: setpriority acts on one thread, so each is recorded,
/// written, and restored by itself. Owner of the stragglers; event-loop thread.
class ThreadNice {
 public:
  ThreadNice(ports::ProcessSource& processes, ports::Scheduler& scheduler, LedgerBook& book,
             ports::Report& report, const core::Limits& limits, bool dry_run);

  /// Brings all threads, also those born since the last call, to `wish`. Threads whose value was
  /// changed by somebody else are left alone and counted as contended.
  [[nodiscard]] core::Result<NiceSummary> apply(NiceState& state, core::RegistrationId holder,
                                                core::Nice wish);
  /// Gives every thread its own original back, and what threads and descendants born since the
  /// last scan inherited. A clone under way has copied the boost but is in no list yet (linux
  /// kernel/fork.c, copy_process: sched_fork comes long before list_add_tail): remembered for
  /// settle_stragglers().
  void release(NiceState& state, core::Nice wish);
  /// The same for a process that has exited and whose children live on: they are left alone.
  void release_exited(NiceState& state, core::Nice wish);
  /// A process that inherited a boost at fork but is not covered: back to what it would have had.
  /// One that is older than the boost has its value by somebody's choice, and is left alone.
  void disinherit(core::Pid child, const Inheritance& inheritance);
  /// The same for every descendant of a process.
  void disinherit_descendants(core::Pid parent, const Inheritance& inheritance);
  /// Looks for what those remembered left behind with this nice; false if none can have.
  bool look_for_stragglers(core::Nice nice);
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
    std::vector<ports::ThreadFacts> fresh;
    NiceSummary summary;
  };
  [[nodiscard]] core::Result<std::vector<ports::ThreadFacts>> look(NiceState& state);
  [[nodiscard]] Pass examine(NiceState& state, const std::vector<ports::ThreadFacts>& threads,
                             core::Nice wish);
  [[nodiscard]] core::Result<void> boost(NiceState& state, core::RegistrationId holder,
                                         core::Nice wish, Pass& pass);
  void read_back(core::Tid tid, const core::ResourceKey& resource, core::Nice wish,
                 NiceSummary& summary);
  void forget_dead(NiceState& state, const std::vector<ports::ThreadFacts>& threads);
  std::set<core::ThreadKey> put_threads_back(NiceState& state, core::Nice wish);
  void put_back(const ports::ThreadFacts& thread, core::Nice original);
  void look_again(const Straggling& straggling);
  void disinherit_threads(core::Pid pid, const Inheritance& inheritance,
                          const std::set<core::ThreadKey>& settled);
  void restore_process(const core::ProcessKey& process, const std::vector<core::ResourceKey>& keys);

  ports::ProcessSource& processes_;
  ports::Scheduler& scheduler_;
  LedgerBook& book_;
  ports::Report& report_;
  const core::Limits& limits_;
  bool dry_run_;
  std::deque<Straggling> stragglers_;
};

}  // namespace apusched::app
