// SPDX-License-Identifier: MIT
#include "gpu_helper/probe.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <utility>

#include "gpu_helper/aql.hpp"
#include "gpu_helper/hsa_compat.hpp"
#include "gpu_helper/noop_kernels.hpp"

namespace apusched::gpu_helper {

using std::chrono::nanoseconds;
using SteadyClock = std::chrono::steady_clock;

namespace {

/// The smallest queue that ROCr and KFD accept; the probe has one packet in flight.
constexpr std::uint32_t kQueueSize = 64;
/// One call into hsa_signal_wait never lasts longer than this.
constexpr nanoseconds kWaitSlice = std::chrono::milliseconds(50);

/// ROCr's threads outlive a probe that is torn down on a fault, so the flag is never freed.
std::atomic<bool> fault_flag{false};

hsa_status_t on_system_event(const hsa_amd_event_t*, void*) {
  fault_flag.store(true, std::memory_order_release);
  return HSA_STATUS_SUCCESS;
}
void on_queue_error(hsa_status_t, hsa_queue_t*, void*) {
  fault_flag.store(true, std::memory_order_release);
}

/// "0000:04:00.0" of an agent, from its domain and its bus/device/function number.
std::string pci_of(hsa_agent_t agent) {
  std::uint32_t bdf = 0;
  if (amd_agent_info(agent, HSA_AMD_AGENT_INFO_BDFID, &bdf) != HSA_STATUS_SUCCESS) return {};
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", agent_domain(agent) & 0xffffU,
                (bdf >> 8U) & 0xffU, (bdf >> 3U) & 0x1fU, bdf & 7U);
  return text.data();
}

struct AgentSearch {
  std::string wanted;
  std::optional<hsa_agent_t> found;
};

hsa_status_t match_agent(hsa_agent_t agent, void* data) {
  auto& search = *static_cast<AgentSearch*>(data);
  hsa_device_type_t type{};
  if (hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type) != HSA_STATUS_SUCCESS ||
      type != HSA_DEVICE_TYPE_GPU || pci_of(agent) != search.wanted)
    return HSA_STATUS_SUCCESS;
  search.found = agent;
  return HSA_STATUS_INFO_BREAK;
}

std::string isa_of(hsa_agent_t agent) {
  std::array<char, 64> name{};
  if (hsa_agent_get_info(agent, HSA_AGENT_INFO_NAME, name.data()) != HSA_STATUS_SUCCESS) return {};
  return name.data();
}

}  // namespace

/// Owner of everything that the runtime handed out; releases it in reverse order.
struct Probe::State {
  bool initialised = false;
  hsa_agent_t agent{};
  double nanoseconds_per_tick = 1;
  hsa_queue_t* queue = nullptr;
  /// One per source: a shared one would show a barrier the timestamps of the kernel before it.
  struct Completion {
    hsa_signal_t signal{};
    std::uint64_t last_start = 0;
  };
  std::array<Completion, 2> completions;
  std::optional<hsa_code_object_reader_t> reader;
  std::optional<hsa_executable_t> executable;
  std::uint64_t kernel_object = 0;
  std::uint32_t private_size = 0;
  std::uint32_t group_size = 0;
  std::string kernel_problem;
  const Completion* in_flight = nullptr;  ///< of the packet that missed its deadline
  SteadyClock::time_point in_flight_since;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (queue != nullptr) hsa_queue_destroy(queue);
    if (executable) hsa_executable_destroy(*executable);
    if (reader) hsa_code_object_reader_destroy(*reader);
    for (const auto& completion : completions) {
      // A packet in flight may still write its signal; the process is about to end anyway then.
      if (completion.signal.handle != 0 && &completion != in_flight)
        hsa_signal_destroy(completion.signal);
    }
    if (initialised) hsa_shut_down();
  }

  [[nodiscard]] core::Result<void> start(const core::PciAddress& gpu) {
    if (const auto status = hsa_init(); status != HSA_STATUS_SUCCESS)
      return hsa_fail("hsa_init", status);
    initialised = true;
    if (const auto status = register_reset_handler(on_system_event, nullptr);
        status != HSA_STATUS_SUCCESS)
      return hsa_fail("hsa_amd_register_system_event_handler", status);
    std::uint64_t frequency = 0;
    hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &frequency);
    if (frequency == 0)
      return core::fail(core::ErrorCode::failed, "hsa_system_get_info", "HSA runtime",
                        "the timestamp frequency is zero");
    nanoseconds_per_tick = 1e9 / static_cast<double>(frequency);
    AgentSearch search{gpu.text(), std::nullopt};
    hsa_iterate_agents(match_agent, &search);
    if (!search.found)
      return core::fail(core::ErrorCode::unsupported, "find HSA agent", gpu.text(),
                        "the installed HSA runtime knows no GPU at this address");
    agent = *search.found;
    return open_queue();
  }

  [[nodiscard]] core::Result<void> open_queue() {
    for (auto& completion : completions) {
      const auto made = hsa_signal_create(1, 0, nullptr, &completion.signal);
      if (made == HSA_STATUS_SUCCESS) continue;
      completion.signal = {};
      return hsa_fail("hsa_signal_create", made);
    }
    // A null callback makes ROCr abort on a queue error.
    const auto status = hsa_queue_create(agent, kQueueSize, HSA_QUEUE_TYPE_SINGLE, on_queue_error,
                                         nullptr, UINT32_MAX, UINT32_MAX, &queue);
    if (status != HSA_STATUS_SUCCESS) {
      queue = nullptr;
      return hsa_fail("hsa_queue_create", status);
    }
    // Timestamps are a bonus: without them samples carry host latency only.
    hsa_amd_profiling_set_profiler_enabled(queue, 1);
    return {};
  }

  void load_kernel() {
    const std::string isa = isa_of(agent);
    const auto code = noop_code_object(isa);
    if (code.empty()) {
      kernel_problem = "no kernel for ISA " + isa + " in this build; barrier samples only";
      return;
    }
    if (const auto status = load_code(code); status != HSA_STATUS_SUCCESS) {
      kernel_object = 0;
      kernel_problem = "kernel for ISA " + isa + " does not load: " + hsa_sentence(status);
    }
  }

  [[nodiscard]] hsa_status_t load_code(std::span<const std::byte> code) {
    hsa_code_object_reader_t made_reader{};
    auto status = hsa_code_object_reader_create_from_memory(code.data(), code.size(), &made_reader);
    if (status != HSA_STATUS_SUCCESS) return status;
    reader = made_reader;
    hsa_executable_t made{};
    status = hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
                                       nullptr, &made);
    if (status != HSA_STATUS_SUCCESS) return status;
    executable = made;
    status = hsa_executable_load_agent_code_object(made, agent, made_reader, nullptr, nullptr);
    if (status != HSA_STATUS_SUCCESS) return status;
    status = hsa_executable_freeze(made, nullptr);
    if (status != HSA_STATUS_SUCCESS) return status;
    hsa_executable_symbol_t symbol{};
    status = hsa_executable_get_symbol_by_name(made, "noop.kd", &agent, &symbol);
    if (status != HSA_STATUS_SUCCESS) return status;
    hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE,
                                   &private_size);
    hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE,
                                   &group_size);
    return hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT,
                                          &kernel_object);
  }

  /// True once the completion signal is 0. The runtime's unit of time is the system timestamp.
  [[nodiscard]] static bool wait_until(hsa_signal_t signal, SteadyClock::time_point deadline,
                                       double nanoseconds_per_tick) {
    for (auto left = deadline - SteadyClock::now(); left > nanoseconds(0);
         left = deadline - SteadyClock::now()) {
      const auto slice = std::min<nanoseconds>(left, kWaitSlice);
      const auto ticks =
          static_cast<std::uint64_t>(static_cast<double>(slice.count()) / nanoseconds_per_tick);
      if (hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, ticks,
                                    HSA_WAIT_STATE_BLOCKED) < 1)
        return true;
      if (fault_flag.load(std::memory_order_acquire)) return false;
    }
    return hsa_signal_load_scacquire(signal) < 1;
  }

  [[nodiscard]] std::optional<nanoseconds> device_time(Completion& completion,
                                                       nanoseconds host) const {
    hsa_amd_profiling_dispatch_time_t time{};
    if (hsa_amd_profiling_get_dispatch_time(agent, completion.signal, &time) != HSA_STATUS_SUCCESS)
      return std::nullopt;
    const bool stale = time.start == completion.last_start;
    completion.last_start = time.start;
    if (stale || time.start == 0 || time.end < time.start) return std::nullopt;
    const nanoseconds span(static_cast<std::int64_t>(static_cast<double>(time.end - time.start) *
                                                     nanoseconds_per_tick));
    // Packet processing lies within what the host waited; more is a torn timestamp.
    return span <= host ? std::optional(span) : std::nullopt;
  }

  void submit_one(core::ProbeSource source, hsa_signal_t signal, SteadyClock::time_point& start) {
    const auto mark = [&start] { start = SteadyClock::now(); };
    if (source == core::ProbeSource::queue) {
      submit(queue, barrier_packet(signal), packet_head(HSA_PACKET_TYPE_BARRIER_AND, 0), mark);
      return;
    }
    auto packet = noop_packet(kernel_object, signal);
    packet.private_segment_size = private_size;
    packet.group_segment_size = group_size;
    constexpr auto kSetup = std::uint16_t{1U << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS};
    submit(queue, packet, packet_head(HSA_PACKET_TYPE_KERNEL_DISPATCH, kSetup), mark);
  }
};

core::Result<std::unique_ptr<Probe>> Probe::open(const core::PciAddress& gpu) {
  auto state = std::make_unique<State>();
  if (auto started = state->start(gpu); !started) return tl::unexpected(started.error());
  state->load_kernel();
  return std::unique_ptr<Probe>(new Probe(std::move(state)));
}

Probe::Probe(std::unique_ptr<State> state) : state_(std::move(state)) {}
Probe::~Probe() = default;

std::optional<Probe::Outcome> Probe::sample(core::ProbeSource source, nanoseconds deadline) {
  auto& s = *state_;
  if (stuck_since() || (source == core::ProbeSource::kernel && s.kernel_object == 0))
    return std::nullopt;
  auto& completion = s.completions[static_cast<std::size_t>(source)];
  hsa_signal_store_relaxed(completion.signal, 1);
  SteadyClock::time_point start;
  s.submit_one(source, completion.signal, start);
  if (!State::wait_until(completion.signal, start + deadline, s.nanoseconds_per_tick)) {
    s.in_flight = &completion;
    s.in_flight_since = start;
    return Outcome{true, nanoseconds(0), std::nullopt};
  }
  const nanoseconds latency = SteadyClock::now() - start;
  return Outcome{false, latency, s.device_time(completion, latency)};
}

std::optional<SteadyClock::time_point> Probe::stuck_since() {
  auto& s = *state_;
  if (s.in_flight != nullptr && hsa_signal_load_scacquire(s.in_flight->signal) < 1)
    s.in_flight = nullptr;
  return s.in_flight != nullptr ? std::optional(s.in_flight_since) : std::nullopt;
}

bool Probe::faulted() const {
  return fault_flag.load(std::memory_order_acquire);
}
bool Probe::has_kernel() const {
  return state_->kernel_object != 0;
}
const std::string& Probe::kernel_problem() const {
  return state_->kernel_problem;
}

}  // namespace apusched::gpu_helper
