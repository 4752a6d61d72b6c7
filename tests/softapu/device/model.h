// SPDX-License-Identifier: MIT
// The software APU as a pure discrete-event model: no clock, no lock, no thread of its own. Every
// call carries the time; start and end of kernels are exact in model time however late the caller
// comes. Not thread-safe: one caller at a time (device/shared_device.h locks).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "device/state.h"

namespace apusched::softapu {

// Since the epoch of CLOCK_MONOTONIC; in unit tests since anything.
using Nanoseconds = std::chrono::nanoseconds;

enum class ClientIndex : std::uint32_t {};
enum class QueueIndex : std::uint32_t {};
enum class RunIndex : std::uint32_t {};

struct QueueSpec {
  std::uint32_t id = 0;
  std::uint32_t ring_bytes = 0;
  std::int32_t priority = 0;
  std::uint32_t percent = 100;
};

struct KernelCost {
  std::uint64_t workgroups = 1;
  double ns_per_workgroup = 0;  // on one CU at the reference clock
  std::uint32_t waves_per_workgroup = 1;
};

struct RunTimes {
  Nanoseconds start{};
  Nanoseconds end{};
};

// Told when kernels of a client will end earlier than it was last told.
class RateObserver {
 public:
  virtual ~RateObserver() = default;
  virtual void runs_end_earlier(ClientIndex client) = 0;
};

[[nodiscard]] bool is_profile(Level level);  // one that profile_exit leaves
[[nodiscard]] std::string_view level_name(Level level);
// Accepts a trailing newline, as sysfs does; nothing else around the word.
[[nodiscard]] std::optional<Level> parse_level(std::string_view text);
// For a file that may have been written without O_TRUNC, as sysfs allows: a new word over the
// beginning of "<before>\n".
[[nodiscard]] std::optional<Level> parse_level_written_over(std::string_view text, Level before);

class DeviceModel {
 public:
  // Both outlive the model. The observer may be called from any member that takes a time.
  DeviceModel(DeviceState& state, RateObserver& observer) : s_(state), observer_(observer) {}

  // Brings the device up to `now`. Times before the present are ignored.
  void advance(Nanoseconds now);

  std::optional<ClientIndex> add_client(std::uint32_t pid, Nanoseconds now);
  // Frees its queues, kernels and memory too: what a killed process leaves is nothing.
  void remove_client(ClientIndex client, Nanoseconds now);
  std::optional<QueueIndex> add_queue(ClientIndex client, const QueueSpec& spec, Nanoseconds now);
  void remove_queue(QueueIndex queue, Nanoseconds now);
  void set_mask(QueueIndex queue, const CuMask& mask, Nanoseconds now);
  void set_priority(QueueIndex queue, std::int32_t priority, std::uint32_t percent,
                    Nanoseconds now);
  // 0..1, of all CPUs together: what it leaves of the package's power.
  void set_cpu_load(double load, Nanoseconds now);
  // False: the model's chip refuses this level, or there is no profile to leave.
  bool set_level(Level level, Nanoseconds now);

  // Empty: no room for another kernel now.
  std::optional<RunIndex> launch(QueueIndex queue, const KernelCost& cost, Nanoseconds now);
  // Start and end once it has ended; frees the slot.
  std::optional<RunTimes> collect(RunIndex run);
  // When to look again if nothing changes: its end, or when it gets more units. Empty while it
  // cannot end (all its CUs masked off).
  [[nodiscard]] std::optional<Nanoseconds> expected_end(RunIndex run) const;

  // Faults (faults.cpp). Clearing one forgets its queues or files too. Clients are to be woken by
  // the caller.
  void set_fault(Fault fault, bool on, Nanoseconds now);
  // False: no more than eight.
  bool stop_queue(std::uint32_t pid, std::uint32_t id, Nanoseconds now);
  // A reset or a removal: nothing that runs goes on, and no present client has a future.
  void lose_clients(Nanoseconds now);
  [[nodiscard]] bool lost(ClientIndex client) const;
  // Its packets are not taken and its kernels stand still.
  [[nodiscard]] bool halted(QueueIndex queue) const;

  [[nodiscard]] std::uint32_t sclk_mhz() const;
  [[nodiscard]] std::uint32_t mclk_mhz() const;
  [[nodiscard]] CuMask all_cus() const;

 private:
  [[nodiscard]] std::int64_t next_event(std::int64_t limit) const;
  void pass_time(std::int64_t until);
  bool change_phases();
  bool govern();
  void rerate();
  [[nodiscard]] static double time_left(const Run& run);
  [[nodiscard]] std::uint32_t engines() const;
  [[nodiscard]] std::uint32_t engines_of(const CuMask& mask) const;
  void deal(Run& run, const KernelCost& cost) const;
  void deal_anew(Run& run) const;
  [[nodiscard]] double units_in(const CuMask& mask, std::size_t engine) const;
  [[nodiscard]] std::uint32_t engines_filled_by(const Run& run) const;
  [[nodiscard]] std::int64_t room_at(std::size_t cu, const Run& run) const;
  [[nodiscard]] std::size_t sharing_group(const QueueState& queue) const;
  void share_unit(std::size_t cu);
  [[nodiscard]] bool anything_running() const;
  void drop_runs_of(std::uint32_t queue);
  void free_live(std::uint32_t position);
  std::int64_t wake_ns();
  void rank_queues();
  void unmap_for_change(std::uint32_t queue);
  [[nodiscard]] std::int64_t quantum_ns() const;
  [[nodiscard]] std::uint32_t list_of(const QueueState& queue) const;
  void find_busy_lists();
  [[nodiscard]] std::int64_t next_turn() const;
  [[nodiscard]] std::int64_t mapped_at(const QueueState& queue) const;
  [[nodiscard]] bool halted(std::uint32_t queue) const;

  DeviceState& s_;
  RateObserver& observer_;
};

}  // namespace apusched::softapu
