// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/ledger_book.hpp"
#include "core/lever.hpp"
#include "ports/event_loop.hpp"
#include "ports/report.hpp"

namespace apusched::app {

/// How one kind of shared resource is read and written. Answers may come at once or later.
class LeverBackend {
 public:
  virtual ~LeverBackend() = default;
  using ReadCallback = std::function<void(core::Result<core::LeverValue>)>;
  using DoneCallback = std::function<void(core::Result<void>)>;
  virtual void read(const std::string& id, ReadCallback done) = 0;
  /// Writes only where `expected` is in force (else `contended`) and reads back. Where `value` is
  /// in force already there is nothing to write and that is a success.
  virtual void write(const std::string& id, const core::LeverValue& value,
                     const core::LeverValue& expected, DoneCallback done) = 0;
  /// A reason to leave a value alone that was found there (a person chose it); empty: go ahead.
  [[nodiscard]] virtual std::string refuse(const core::LeverValue& /*found*/) const { return {}; }
  /// An error that may go by itself; reading is then tried again, and so is a resource that is
  /// gone.
  [[nodiscard]] virtual bool is_temporary(const core::Error& /*error*/) const { return false; }
  /// Before the first write: true where the write will leave a trace that `clean_up` removes.
  [[nodiscard]] virtual bool leaves_trace(const std::string& /*id*/) { return false; }
  /// After the original is back.
  virtual void clean_up(const std::string& /*id*/) {}
};

/// A lever that several registrations may hold at once (autogroup, unit weight, GPU level): the
/// strongest wish is in force, the last one to leave restores. One write at a time per resource;
/// wishes that arrive meanwhile are looked at when it ends.
/// Owner of the per-resource state below. Event-loop thread.
class SharedLever {
 public:
  using Changed = std::function<void(const std::string& id)>;
  struct State {
    core::Outcome outcome = core::Outcome::pending;
    std::string detail;
  };

  SharedLever(core::LeverKind kind, LeverBackend& backend, LedgerBook& book, ports::EventLoop& loop,
              ports::Report& report, bool dry_run);
  void on_changed(Changed changed) { changed_ = std::move(changed); }

  void hold(const std::string& id, const core::Holding& holding);
  void release(const std::string& id, core::RegistrationId holder);
  /// Restores entries that an earlier run left behind (they have no holders).
  void restore_leftovers();
  /// Tells what was seen in force, by a reading asked for at `asked`; a foreign value makes the
  /// resource contended. One from before our last write says nothing.
  void observed(const std::string& id, const core::LeverValue& value,
                std::chrono::steady_clock::time_point asked);

  /// Somebody else wants the value that is in force, which reads as ours: it becomes theirs.
  void disown(const std::string& id, const std::string& why);

  /// Nothing where the resource is not dealt with (any more).
  [[nodiscard]] std::optional<State> state(const std::string& id) const;
  /// Nothing in flight and nothing waiting for a retry.
  [[nodiscard]] bool settled() const;

 private:
  struct Slot {
    bool busy = false;
    std::vector<core::Holding> waiting;  ///< wishes until the original is known
    State state;
    std::unique_ptr<ports::Subscription> retry;
    std::chrono::milliseconds retry_delay{0};
    std::chrono::steady_clock::time_point written_at{};
  };

  [[nodiscard]] core::ResourceKey key(const std::string& id) const { return {kind_, id}; }
  void start_reading(const std::string& id);
  void original_known(const std::string& id, const core::Result<core::LeverValue>& original);
  void try_again_later(const std::string& id);
  void reconcile(const std::string& id);
  void write(const std::string& id, const core::LeverValue& value,
             const core::LeverValue& expected);
  void written(const std::string& id, const core::LeverValue& value,
               const core::Result<void>& result);
  void restored(const std::string& id);
  void write_failed(const std::string& id, const core::Error& error);
  void set_state(const std::string& id, State state);

  core::LeverKind kind_;
  LeverBackend& backend_;
  LedgerBook& book_;
  ports::EventLoop& loop_;
  ports::Report& report_;
  bool dry_run_;
  Changed changed_;
  std::map<std::string, Slot> slots_;
};

}  // namespace apusched::app
