// SPDX-License-Identifier: MIT
// The state of the software APU that all client processes share: plain data without pointers, so
// that it can live in a mapped file. Owner of every field: whoever holds the lock of
// device/shared_device.h, except the atomics (see each).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "device/faults.h"

namespace apusched::softapu {

inline constexpr std::size_t kMaxClients = 64;
inline constexpr std::size_t kMaxQueues = 256;
inline constexpr std::size_t kMaxRuns =
    2048;  // kMaxQueues * kMaxInFlight: a launch always finds room
inline constexpr std::size_t kMaxInFlight = 8;
inline constexpr std::size_t kMaxDpmStates = 8;
inline constexpr std::size_t kMaxComputeUnits = 256;
inline constexpr std::size_t kMaxEngines = 24;  // mi300a: 6 XCCs of 4
inline constexpr std::size_t kMaxArrays = 16;   // of one XCC

// Values of power_dpm_force_performance_level that the model knows (amdgpu_pm.c).
enum class Level : std::uint32_t {
  automatic,
  low,
  high,
  manual,
  profile_standard,
  profile_min_sclk,
  profile_min_mclk,
  profile_peak,
  profile_exit,  // written only: back to the level before profile_*
  perf_determinism,
};
inline constexpr std::size_t kLevels = 10;

struct DpmTable {
  std::uint32_t count = 0;
  std::array<std::uint32_t, kMaxDpmStates> mhz{};
};

// Sources and assumptions: ../FIDELITY.md.
struct PowerDescription {
  double idle_w = 0;
  double gfx_w = 0;  // on top, at the highest clock and full load
  double cpu_w = 0;  // on top, with all CPUs busy
  double tdp_w = 0;  // of the package; 0: no limit
  double ambient_c = 0;
  double c_per_w = 0;  // above ambient, when settled
  double limit_c = 0;  // throttles from here; 0: never
  std::uint32_t thermal_time_ms = 0;
  std::uint32_t ramp_mhz_per_ms = 0;        // 0: a clock is there at once
  std::uint32_t gfxoff_after_us = 0;        // of idleness; 0: never
  std::uint32_t gfxoff_wake_us = 0;         // until the first workgroup after GFXOFF
  std::uint32_t queues_forbid_gfxoff = 0;   // 1: off only without any queue
  std::uint32_t two_clients_pin_clock = 0;  // 1: two processes with queues mean full clock
};

// What a model file says, in the form that the preload library needs (no strings to parse there).
struct DeviceDescription {
  std::array<char, 16> gfx_name{};
  std::array<char, 64> marketing_name{};
  std::uint32_t gpu_id = 0;
  std::uint32_t compute_units = 0;
  std::uint32_t shader_engines = 0;
  std::uint32_t arrays_per_engine = 0;
  std::uint32_t xccs = 1;
  std::array<std::uint32_t, kMaxArrays> units_per_array{};  // engine * arrays_per_engine + array
  std::array<std::uint8_t, kMaxComputeUnits> engine_of_cu{};
  std::uint32_t simds_per_cu = 0;
  std::uint32_t wave_size = 32;
  std::uint32_t wave_slots_per_cu = 0;  // 0: no limit
  std::uint32_t gfx_major = 0;
  std::uint32_t drm_card = 0;
  std::uint32_t drm_render_minor = 0;
  std::array<char, 16> pci_address{};
  std::uint32_t num_cp_queues = 0;     // mapped at a time; 0: no limit
  std::uint32_t queue_quantum_us = 0;  // of a mapped queue when there are more
  std::uint32_t remap_us = 0;          // queues are unmapped so long for a change
  std::uint32_t mes = 0;               // 1: scheduled by MES, else by HWS
  std::uint32_t discrete = 0;          // 1: no APU
  std::uint32_t pci_device = 0;
  std::uint32_t pci_revision = 0;
  std::uint32_t max_in_flight_per_queue = 0;
  std::uint32_t allowed_levels = 0;  // bit per Level
  DpmTable sclk;
  DpmTable mclk;
  std::uint32_t reference_sclk_mhz = 0;  // the clock at which kernel costs are stated
  std::uint64_t vram_bytes = 0;
  std::uint64_t gtt_bytes = 0;
  std::uint64_t kfd_pool_bytes = 0;  // what KFD hands out as "VRAM"; on APUs out of GTT
  std::uint64_t vram_base_used = 0;
  std::uint64_t gtt_base_used = 0;
  std::uint32_t dispatch_overhead_ns = 0;   // packet seen -> first workgroup on a CU
  std::uint32_t workgroup_ns = 0;           // a kernel that states no cost
  std::uint32_t copy_bytes_per_us = 0;      // blit kernels, at the reference clock
  std::uint32_t load_time_constant_us = 0;  // of the clock governor at level auto
  PowerDescription power;
};

struct CuMask {
  std::array<std::uint64_t, kMaxComputeUnits / 64> words{};
  [[nodiscard]] bool test(std::size_t cu) const { return (words[cu / 64] >> (cu % 64) & 1U) != 0; }
  void set(std::size_t cu) { words[cu / 64] |= std::uint64_t{1} << (cu % 64); }
  bool operator==(const CuMask&) const = default;
};

struct Client {
  std::uint32_t pid = 0;  // 0: free
  std::uint32_t generation = 0;
  std::uint32_t losses = 0;  // FaultState::losses when it came
  std::uint64_t vram_used = 0;
  std::uint64_t gtt_used = 0;
  std::atomic<std::uint32_t> wake{0};      // futex of the client's engine; written by anyone
  std::atomic<std::uint32_t> sleeping{0};  // written by that engine only
  std::atomic<std::uint64_t> wakeups{0};   // times the engine returned from its sleep
  std::atomic<std::uint64_t> doorbell_faults{0};
};

// Written by the engine of the owning process only, read by anyone.
struct QueueCounters {
  std::atomic<std::uint64_t> submitted{0};  // packets announced by a doorbell
  std::atomic<std::uint64_t> launched{0};   // packets taken from the ring
  std::atomic<std::uint64_t> retired{0};    // packets completed
  std::atomic<std::uint64_t> dispatches{0};
  std::atomic<std::uint64_t> barriers{0};
  std::atomic<std::uint64_t> overlapped{0};  // dispatches launched while another of the queue ran
  std::atomic<std::uint64_t> errors{0};
};

struct QueueState {
  std::uint32_t used = 0;
  std::uint32_t client = 0;  // index
  std::uint32_t id = 0;      // unique within the client
  std::uint32_t ring_bytes = 0;
  std::int32_t priority = 0;  // -3..3, 0 normal
  std::uint32_t percent = 0;
  CuMask mask;
  std::uint64_t mask_updates = 0;
  std::uint64_t priority_updates = 0;
  std::uint64_t serial = 0;            // order of creation
  std::uint32_t rank = 0;              // among the queues of the device, by serial
  std::int64_t unmapped_until_ns = 0;  // while a change of it is applied
  QueueCounters counters;
};

enum class RunPhase : std::uint32_t { none, launching, executing, ended };

// What of a kernel one shader engine has to do.
struct EngineShare {
  double left = 0;     // CU nanoseconds at the reference clock
  double rate = 0;     // of the above per nanosecond, now
  double max_cus = 0;  // its workgroups
};

// One kernel on the device, from launch until its owner collects it.
struct Run {
  RunPhase phase = RunPhase::none;
  std::uint32_t queue = 0;  // index
  std::array<EngineShare, kMaxEngines> shares{};
  double group_ns = 0;  // of one workgroup, at the reference clock
  std::uint32_t waves_per_group = 1;
  std::uint32_t filled = 0;   // one bit for each engine that it fills
  std::int64_t start_ns = 0;  // first workgroup, if there is room
  std::int64_t begin_ns = 0;  // its queue is mapped; 0: not yet
  std::int64_t room_ns = 0;   // next time at which it may get more CUs; 0: none
  std::int64_t end_ns = 0;
};

inline constexpr std::uint32_t kThrottlePower = 1;
inline constexpr std::uint32_t kThrottleHeat = 2;

struct DeviceState {
  DeviceDescription description;
  Level level = Level::automatic;
  Level level_before_profile = Level::automatic;
  std::uint32_t sclk_mhz = 0;
  std::uint32_t mclk_index = 0;
  double load = 0;               // smoothed, 0..1, what the clock governor sees
  std::int64_t now_ns = 0;       // everything below is up to date at this time
  std::int64_t governor_ns = 0;  // next decision of the clock governor
  std::int64_t busy_ns = 0;      // total time with at least one kernel executing
  std::uint64_t level_writes = 0;
  std::uint64_t clients_seen = 0;
  std::uint64_t clients_reaped = 0;
  std::uint64_t queues_made = 0;
  std::uint32_t queue_count = 0;
  std::uint64_t busy_lists = 0;  // of the runlist, one bit each, at now_ns
  // Power and heat, up to now_ns (device/power.cpp).
  double cpu_load = 0;  // 0..1, as it was last told
  double temperature_c = 0;
  double gfx_power_w = 0;
  double cpu_power_w = 0;
  double power_w = 0;           // of the package
  double thermal_cap = 1;       // 0..1 of the clock range that heat leaves
  std::uint32_t throttled = 0;  // bits: kThrottlePower, kThrottleHeat
  std::uint32_t gfx_off = 0;    // 1: in GFXOFF
  std::int64_t idle_since_ns = 0;
  std::int64_t clock_ns = 0;  // sclk_mhz is of this time
  std::uint64_t gfxoff_entries = 0;
  std::uint32_t busy_percent = 0;  // written by the supervisor
  // 1: nothing moves, and the supervisor sleeps; who launches a kernel sets 0 and wakes it.
  std::uint32_t readings_rest = 0;
  std::array<Client, kMaxClients> clients;
  std::array<QueueState, kMaxQueues> queues;
  std::array<Run, kMaxRuns> runs;
  std::array<std::uint32_t, kMaxRuns> live;  // indices of runs in use, unordered
  std::uint32_t live_count = 0;
  FaultState faults;
};

}  // namespace apusched::softapu
