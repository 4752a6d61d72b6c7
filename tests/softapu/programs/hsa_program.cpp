// SPDX-License-Identifier: MIT
#include "programs/hsa_program.h"

#include <fcntl.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace apusched::softapu {
namespace {

constexpr std::chrono::seconds kPatience{30};

std::uint16_t header(hsa_packet_type_t type, bool barrier) {
  return static_cast<std::uint16_t>(
      type << HSA_PACKET_HEADER_TYPE | (barrier ? 1 : 0) << HSA_PACKET_HEADER_BARRIER |
      HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
      HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
}

hsa_signal_t handle(const Signal* signal) {
  return signal == nullptr ? hsa_signal_t{0} : signal->get();
}

struct Agents {
  hsa_agent_t cpu{}, gpu{};
};

hsa_status_t note_agent(hsa_agent_t agent, void* data) {
  auto* found = static_cast<Agents*>(data);
  hsa_device_type_t type{};
  require(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type), "agent type");
  if (type == HSA_DEVICE_TYPE_CPU && found->cpu.handle == 0) found->cpu = agent;
  if (type == HSA_DEVICE_TYPE_GPU && found->gpu.handle == 0) found->gpu = agent;
  return HSA_STATUS_SUCCESS;
}

// Fine grained and good for kernel arguments.
hsa_status_t note_pool(hsa_amd_memory_pool_t pool, void* data) {
  hsa_amd_segment_t segment{};
  std::uint32_t flags = 0;
  hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment);
  if (segment != HSA_AMD_SEGMENT_GLOBAL) return HSA_STATUS_SUCCESS;
  hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags);
  if ((flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT) == 0) return HSA_STATUS_SUCCESS;
  *static_cast<hsa_amd_memory_pool_t*>(data) = pool;
  return HSA_STATUS_INFO_BREAK;
}

void queue_failed(hsa_status_t status, hsa_queue_t*, void*) {
  const char* words = "?";
  hsa_status_string(status, &words);
  give_up(std::string("queue error: ") + words);
}

}  // namespace

void give_up(const std::string& sentence) {
  std::fprintf(stderr, "%s\n", sentence.c_str());
  std::_Exit(1);
}

void require(hsa_status_t status, const char* what) {
  if (status == HSA_STATUS_SUCCESS) return;
  const char* words = "?";
  hsa_status_string(status, &words);
  give_up(std::string(what) + ": " + words);
}

std::string executable_directory() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  const std::string text(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  return text.substr(0, text.rfind('/'));
}

Signal::Signal(hsa_signal_value_t value) {
  require(hsa_signal_create(value, 0, nullptr, &signal_), "hsa_signal_create");
}

Signal::~Signal() {
  hsa_signal_destroy(signal_);
}

bool Signal::wait(hsa_wait_state_t how, std::chrono::nanoseconds limit) const {
  std::uint64_t frequency = 0;
  hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &frequency);
  const auto ticks = static_cast<std::uint64_t>(std::chrono::duration<double>(limit).count() *
                                                static_cast<double>(frequency));
  return hsa_signal_wait_scacquire(signal_, HSA_SIGNAL_CONDITION_LT, 1, ticks, how) < 1;
}

Gpu::Gpu() {
  require(hsa_init(), "hsa_init");
  Agents found;
  require(hsa_iterate_agents(note_agent, &found), "hsa_iterate_agents");
  if (found.gpu.handle == 0) give_up("no GPU agent");
  cpu_ = found.cpu;
  gpu_ = found.gpu;
  hsa_amd_agent_iterate_memory_pools(cpu_, note_pool, &pool_);
  if (pool_.handle == 0) give_up("no memory pool for kernel arguments");
}

Gpu::~Gpu() {
  if (executable_) hsa_executable_destroy(*executable_);
  hsa_shut_down();
}

std::string Gpu::name() const {
  char text[64] = {};
  require(hsa_agent_get_info(gpu_, HSA_AGENT_INFO_NAME, text), "agent name");
  return text;
}

void Gpu::load_kernels(const std::string& directory) {
  const std::string file = "/kernels-" + name() + ".hsaco";
  std::string path = (directory.empty() ? executable_directory() : directory) + file;
  if (directory.empty() && access(path.c_str(), F_OK) != 0)
    path = executable_directory() + "/../programs" + file;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) give_up(path + ": " + std::strerror(errno));
  hsa_code_object_reader_t reader{};
  hsa_executable_t executable{};
  require(hsa_code_object_reader_create_from_file(fd, &reader), path.c_str());
  require(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
                                    nullptr, &executable),
          "hsa_executable_create_alt");
  require(hsa_executable_load_agent_code_object(executable, gpu_, reader, nullptr, nullptr),
          "hsa_executable_load_agent_code_object");
  require(hsa_executable_freeze(executable, nullptr), "hsa_executable_freeze");
  hsa_code_object_reader_destroy(reader);
  close(fd);
  executable_ = executable;
}

Kernel Gpu::kernel(const std::string& name) const {
  if (!executable_) give_up("no kernels loaded");
  hsa_executable_symbol_t symbol{};
  Kernel kernel;
  require(hsa_executable_get_symbol_by_name(*executable_, (name + ".kd").c_str(), &gpu_, &symbol),
          name.c_str());
  require(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT,
                                         &kernel.object),
          name.c_str());
  return kernel;
}

void* Gpu::allocate(std::size_t bytes) const {
  void* memory = nullptr;
  require(hsa_amd_memory_pool_allocate(pool_, bytes, 0, &memory), "hsa_amd_memory_pool_allocate");
  require(hsa_amd_agents_allow_access(1, &gpu_, nullptr, memory), "hsa_amd_agents_allow_access");
  return memory;
}

void Gpu::release(void* memory) const {
  hsa_amd_memory_pool_free(memory);
}

Queue::Queue(const Gpu& gpu, std::uint32_t packets, bool profiling) {
  require(hsa_queue_create(gpu.agent(), packets, HSA_QUEUE_TYPE_MULTI, queue_failed, nullptr,
                           UINT32_MAX, UINT32_MAX, &queue_),
          "hsa_queue_create");
  if (profiling) require(hsa_amd_profiling_set_profiler_enabled(queue_, 1), "profiling");
}

Queue::~Queue() {
  hsa_queue_destroy(queue_);
}

void Queue::submit(const void* packet, std::uint32_t first_word) const {
  const std::uint64_t index = hsa_queue_add_write_index_screlease(queue_, 1);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (index - hsa_queue_load_read_index_scacquire(queue_) >= queue_->size) {
    if (std::chrono::steady_clock::now() > until) give_up("the queue stays full");
    sched_yield();
  }
  auto* slot = static_cast<char*>(queue_->base_address) + (index & (queue_->size - 1)) * 64;
  std::memcpy(slot + 4, static_cast<const char*>(packet) + 4, 60);
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(slot), first_word, __ATOMIC_RELEASE);
  hsa_signal_store_screlease(queue_->doorbell_signal, static_cast<hsa_signal_value_t>(index));
}

void Queue::dispatch(const Dispatch& what, const Signal* done) const {
  hsa_kernel_dispatch_packet_t packet{};
  packet.workgroup_size_x = what.workgroup_size;
  packet.workgroup_size_y = packet.workgroup_size_z = 1;
  packet.grid_size_x = what.workgroups * what.workgroup_size;
  packet.grid_size_y = packet.grid_size_z = 1;
  packet.kernel_object = what.kernel.object;
  packet.kernarg_address = what.arguments;
  packet.completion_signal = handle(done);
  constexpr std::uint32_t kOneDimension = 1U << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS;
  submit(&packet, header(HSA_PACKET_TYPE_KERNEL_DISPATCH, what.barrier) | kOneDimension << 16);
}

void Queue::barrier_and(const Signal* dependency, const Signal* done, bool barrier) const {
  hsa_barrier_and_packet_t packet{};
  packet.dep_signal[0] = handle(dependency);
  packet.completion_signal = handle(done);
  submit(&packet, header(HSA_PACKET_TYPE_BARRIER_AND, barrier));
}

void Queue::barrier_or(const Signal* first, const Signal* second, const Signal* done) const {
  hsa_barrier_or_packet_t packet{};
  packet.dep_signal[0] = handle(first);
  packet.dep_signal[1] = handle(second);
  packet.completion_signal = handle(done);
  submit(&packet, header(HSA_PACKET_TYPE_BARRIER_OR, true));
}

namespace {

std::chrono::nanoseconds from_ticks(std::uint64_t ticks) {
  std::uint64_t frequency = 1;
  hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &frequency);
  return std::chrono::nanoseconds{
      static_cast<std::int64_t>(static_cast<double>(ticks) * 1e9 / static_cast<double>(frequency))};
}

}  // namespace

DeviceTimes device_times(const Gpu& gpu, const Signal& signal) {
  hsa_amd_profiling_dispatch_time_t times{};
  require(hsa_amd_profiling_get_dispatch_time(gpu.agent(), signal.get(), &times),
          "hsa_amd_profiling_get_dispatch_time");
  return {from_ticks(times.start), from_ticks(times.end)};
}

std::chrono::nanoseconds system_time() {
  std::uint64_t ticks = 0;
  require(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &ticks), "timestamp");
  return from_ticks(ticks);
}

}  // namespace apusched::softapu
