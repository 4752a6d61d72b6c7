// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

/// What apuschedd and the agent in an inference process say to each other.
///
/// The agent connects to a SOCK_SEQPACKET socket and sends `Hello`. The daemon knows the process by
/// the peer credentials of the socket, never by what it says. It answers `Welcome`; with
/// `Refusal::none` two sealed memfds come with it (SCM_RIGHTS), in this order: the control page,
/// which only the daemon can write, and the telemetry page, which the agent writes and the daemon
/// takes for untrusted. After that the daemon sends `Wake` when the control page has changed (a
/// lost one is no harm: the next says the same), the agent sends nothing, and the end of either
/// side is the end of the socket.
///
/// Every number is in the machine's own byte order: both ends are on one machine. A change of any
/// layout changes kVersion.
namespace apusched::agent_abi {

inline constexpr std::uint32_t kMagic = 0x41505553;
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kMaxGpus = 8;
inline constexpr std::size_t kMaxMaskWords = 32;  ///< amdkfd takes at most 1024 bits
inline constexpr std::size_t kMaxQueues = 128;    ///< reported one by one; all are counted
inline constexpr std::size_t kWaits = 64;
/// The agent never holds a submission back longer than this, whatever the control page says.
inline constexpr std::uint64_t kMaxGateNs = 50'000'000;
inline constexpr std::uint32_t kMaxSampleHz = 1000;
inline constexpr const char* kDefaultSocket = "/run/apusched/agent.sock";

/// Environment of the host program, set by `apuschedctl run` (decimal numbers). The last three act
/// from the first queue on, until the control page says otherwise.
inline constexpr const char* kSocketVariable = "APUSCHED_AGENT_SOCKET";
/// How long the first queue waits for the daemon's answer, 0..1000, default 100.
inline constexpr const char* kWaitVariable = "APUSCHED_AGENT_WAIT_MS";
inline constexpr const char* kSerialVariable = "APUSCHED_SERIAL";  ///< 0 or 1
inline constexpr const char* kQueueLimitVariable = "APUSCHED_QUEUE_LIMIT";
inline constexpr const char* kMemoryLimitVariable = "APUSCHED_MEMORY_LIMIT_MIB";

struct HelloGpu {
  std::uint32_t pci_domain;
  std::uint32_t pci_bdf;  ///< bus << 8 | device << 3 | function
  std::uint32_t compute_units;
  char isa[20];  ///< "gfx1035", ended by NUL
};

/// What the agent can do with the runtime it was loaded by.
enum Feature : std::uint32_t {
  kFeatureMask = 1U << 0,
  kFeaturePriority = 1U << 1,
  kFeatureSerial = 1U << 2,
  kFeatureQueueLimit = 1U << 3,
  kFeatureMemoryLimit = 1U << 4,
  kFeatureGate = 1U << 5,
};

struct Hello {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t size;  ///< sizeof(Hello)
  std::uint32_t features;
  std::uint64_t runtime_version;   ///< HSA_SYSTEM_INFO_VERSION: major << 32 | minor
  std::uint32_t core_table_bytes;  ///< version.minor_id of the tables that OnLoad was given
  std::uint32_t amd_table_bytes;
  std::uint32_t queues_before;  ///< made before the agent was loaded: it cannot touch them
  std::uint32_t gpu_count;
  HelloGpu gpus[kMaxGpus];  ///< in the runtime's order; the pages index them the same way
};

enum class Refusal : std::uint32_t {
  none = 0,
  version = 1,    ///< another kVersion: agent and daemon come from different releases
  malformed = 2,  ///< sizes or counts out of range
  full = 3,       ///< a limit of the configuration is reached; try again later
  peer = 4,       ///< the process could not be identified
};

struct Welcome {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t size;  ///< sizeof(Welcome)
  std::uint32_t refusal;
};

struct Wake {
  std::uint32_t magic;
  std::uint32_t sequence;  ///< of the control page
};

enum class Priority : std::uint32_t { leave = 0, low = 1, normal = 2, high = 3 };

struct GpuControl {
  std::uint32_t mask_bits;  ///< 0: no mask of ours. Else bits in use, a multiple of 32
  std::uint32_t mask[kMaxMaskWords];
};

/// Written by the daemon only. `sequence` is odd while it is being written: read it, copy the page,
/// read it again, and take the copy only where both are the same even number.
struct Control {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t size;  ///< sizeof(Control)
  std::uint32_t sequence;
  std::uint32_t sample_hz;             ///< how often queues are looked at; 0: not at all
  std::uint32_t priority;              ///< Priority, of every queue
  std::uint32_t serial;                ///< 0 or 1; acts on queues made from now on
  std::uint32_t queue_limit;           ///< 0: none
  std::uint64_t memory_limit_bytes;    ///< 0: none
  std::uint64_t gate_closed_until_ns;  ///< CLOCK_MONOTONIC; submissions wait until then
  GpuControl gpus[kMaxGpus];
};

enum class Applied : std::uint32_t {
  nothing = 0,  ///< nothing was asked for, or there is no queue yet
  applied = 1,
  failed = 2,       ///< the runtime refused; `detail` is the hsa_status_t
  conflict = 3,     ///< no CU would be left with the program's own mask: that one is in force alone
  unsupported = 4,  ///< not with this runtime or on this queue
};

enum QueueFlag : std::uint32_t {
  kQueueSerial = 1U << 0,
  kQueueMasked = 1U << 1,      ///< by us
  kQueuePriority = 1U << 2,    ///< set by us
  kQueueLeftAlone = 1U << 3,   ///< cooperative: never touched
  kQueueOwnMask = 1U << 4,     ///< the program set a mask too
  kQueueOwnPriority = 1U << 5  ///< the program set a priority; ours is not applied to it
};

struct QueueReport {
  std::uint64_t id;         ///< hsa_queue_t.id
  std::uint64_t submitted;  ///< write index
  std::uint64_t taken;      ///< read index: packets that the GPU has fetched
  std::uint32_t gpu;
  std::uint32_t flags;
};

struct Setting {
  std::uint32_t applied;  ///< Applied: the worst over all queues
  std::uint32_t detail;
};

/// Written by the agent only, with `sequence` as in Control.
struct Telemetry {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint32_t size;  ///< sizeof(Telemetry)
  std::uint32_t sequence;
  std::uint64_t written_ns;        ///< CLOCK_MONOTONIC
  std::uint32_t control_sequence;  ///< of the settings in force
  std::uint32_t queue_count;       ///< live queues
  std::uint32_t reported_queues;   ///< at most kMaxQueues
  std::uint32_t next_wait;         ///< index in waits_ns that is written next
  Setting mask[kMaxGpus];
  Setting priority;
  Setting serial;
  std::uint64_t submitted;  ///< all queues, those destroyed included
  std::uint64_t taken;
  std::uint64_t memory_bytes;  ///< live allocations by the calls that are covered
  std::uint64_t refused_queues;
  std::uint64_t refused_allocations;
  std::uint64_t gate_waits;
  std::uint64_t gate_wait_ns;
  std::uint64_t samples;       ///< looks at the queues
  std::uint64_t busy_samples;  ///< of these, with packets waiting
  std::uint64_t backlog_sum;   ///< packets waiting, summed over the samples
  std::uint64_t wait_count;    ///< waits measured; waits_ns holds the last kWaits
  /// How long packets that were waiting at a sample took until the GPU had fetched the last one:
  /// what a dispatch submitted at a random moment waits.
  std::uint64_t waits_ns[kWaits];
  QueueReport queues[kMaxQueues];
};

static_assert(sizeof(HelloGpu) == 32 && sizeof(Hello) == 40 + kMaxGpus * sizeof(HelloGpu));
static_assert(sizeof(Welcome) == 16 && sizeof(Wake) == 8);
static_assert(sizeof(Control) == 48 + kMaxGpus * sizeof(GpuControl));
static_assert(sizeof(QueueReport) == 32);
static_assert(sizeof(Telemetry) == 720 + kMaxQueues * sizeof(QueueReport));
static_assert(std::is_trivially_copyable_v<Control> && std::is_trivially_copyable_v<Telemetry>);

}  // namespace apusched::agent_abi
