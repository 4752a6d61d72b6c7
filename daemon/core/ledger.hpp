// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/lever.hpp"
#include "core/types.hpp"

namespace apusched::core {

/// One thing in the system whose value can be changed. `id` by kind:
/// nice, scheduling, io_class and timer_slack "TID:START", autogroup "/autogroup-N", cpu_weight and
/// io_weight the unit's name, performance_level the PCI address, freezer the unit's path in the
/// cgroup v2 tree, energy_preference the policy ("policy4").
struct ResourceKey {
  LeverKind kind = LeverKind::nice;
  std::string id;
  auto operator<=>(const ResourceKey&) const = default;
};
/// `kind` is one of those that each thread has for itself.
[[nodiscard]] ResourceKey thread_resource(LeverKind kind, const ThreadKey& thread);
/// The thread named by such a resource; nothing for other kinds or malformed text.
[[nodiscard]] std::optional<ThreadKey> resource_thread(const ResourceKey& key);

struct Holding {
  RegistrationId holder;
  LeverValue wish;
  bool operator==(const Holding&) const = default;
};

struct LedgerEntry {
  LeverValue original;                ///< in force before we touched it; never changed afterwards
  std::optional<LeverValue> written;  ///< what we last wrote; nothing until the first write
  /// A write that was about to happen when this was recorded: after a crash either this or
  /// `written` is in force.
  std::optional<LeverValue> intended;
  std::vector<Holding> holders;  ///< in order of arrival
  bool contended = false;        ///< somebody else owns it until released
  /// For nice: the process of the thread, so that threads born later can be found after a crash.
  std::optional<ProcessKey> process;
  /// For weights: a drop-in of ours is to be removed on release.
  bool drop_in = false;

  bool operator==(const LedgerEntry&) const = default;
};

/// What a change of holders asks the caller to write; nothing means "leave as it is".
struct LedgerStep {
  std::optional<LeverValue> write;
  bool last_holder_left = false;  ///< the write restores the original; then call `forget`
};

/// Originals and holders of every changed resource: reference-counted, strongest wish wins.
/// A plain value without I/O. Owner: app::Registry (one per daemon, event-loop thread).
class Ledger {
 public:
  /// Adds or replaces a holder's wish. `original` is used only when the resource is new.
  LedgerStep hold(const ResourceKey& key, const Holding& holding, const LeverValue& original);
  /// Drops one holder. Unknown resources and holders are no error: nothing is asked for.
  LedgerStep release(const ResourceKey& key, RegistrationId holder);
  void note_intended(const ResourceKey& key, const LeverValue& value);
  /// Also ends the intention.
  void note_written(const ResourceKey& key, const LeverValue& value);
  void drop_intention(const ResourceKey& key);
  void note_contended(const ResourceKey& key);
  void note_process(const ResourceKey& key, const ProcessKey& process);
  void note_drop_in(const ResourceKey& key);
  void forget(const ResourceKey& key);
  /// Puts back an entry read from a store.
  void adopt(const ResourceKey& key, LedgerEntry entry);

  [[nodiscard]] const LedgerEntry* find(const ResourceKey& key) const;
  [[nodiscard]] std::vector<ResourceKey> held_by(RegistrationId holder) const;
  [[nodiscard]] const std::map<ResourceKey, LedgerEntry>& entries() const { return entries_; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

  /// The strongest wish of the holders, or the original where nobody holds it.
  [[nodiscard]] static LeverValue wanted(const LedgerEntry& entry);

 private:
  std::map<ResourceKey, LedgerEntry> entries_;
};

}  // namespace apusched::core
