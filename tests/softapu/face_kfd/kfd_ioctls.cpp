// SPDX-License-Identifier: MIT
// The AMDKFD ioctls that libhsakmt 5.2.3 to 6.4 need, with the meanings of kfd_chardev.c.
#include <linux/kfd_ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include "face_kfd/kfd_process.h"

namespace apusched::softapu {
namespace {

template <class T>
T* user_pointer(std::uint64_t address) {
  return reinterpret_cast<T*>(address);  // NOLINT: the uapi passes pointers as integers
}

// libhsakmt maps HSA's -3..3 to these of KFD's 0..15.
std::int32_t priority_of(std::uint32_t kfd) {
  constexpr std::uint32_t kSteps[] = {0, 3, 5, 7, 9, 11, 15};
  const auto* step = std::lower_bound(std::begin(kSteps), std::end(kSteps) - 1, kfd);
  return static_cast<std::int32_t>(step - std::begin(kSteps)) - 3;
}

// Arguments of another age of the header are shorter or longer: as kfd_ioctl() does, what is
// missing is zero, and no more is given back than there is room for.
template <class T, class Handler>
int with_arguments(unsigned long request, void* user, Handler handler) {
  T arguments{};
  const std::size_t bytes = std::min<std::size_t>(sizeof arguments, _IOC_SIZE(request));
  std::memcpy(&arguments, user, bytes);
  const int error = handler(arguments);
  if (error == 0 && (request & IOC_OUT) != 0) std::memcpy(user, &arguments, bytes);
  return error;
}

}  // namespace

std::uint64_t KfdProcess::doorbell_offset(const ProcessGpu& gpu) const {
  return kDoorbellOffset | gpu.number() << kOffsetGpuShift;
}

template <>
int KfdProcess::handle(kfd_ioctl_get_version_args& a) {
  a = {KFD_IOCTL_MAJOR_VERSION, 11};
  return 0;
}

template <>
int KfdProcess::handle(kfd_ioctl_get_process_apertures_new_args& a) {
  auto* out = user_pointer<kfd_process_device_apertures>(a.kfd_process_device_apertures_ptr);
  // gfx9 and later (kfd_flat_memory.c); ROCr asserts that LDS and scratch have a high word.
  for (std::size_t i = 0; out != nullptr && i < a.num_of_nodes && i < gpus_.size(); i++)
    out[i] = {0x1000000000000, 0x10000ffffffff, 0x2000000000000,       0x20000ffffffff,
              0x4000,          0x7fffffffffff,  description(i).gpu_id, 0};
  a.num_of_nodes = static_cast<std::uint32_t>(gpus_.size());
  return 0;
}

template <>
int KfdProcess::handle(kfd_ioctl_get_clock_counters_args& a) {
  const Nanoseconds now = monotonic_now();
  timespec boot{};
  clock_gettime(CLOCK_BOOTTIME, &boot);
  a.gpu_clock_counter = gpu_ticks(now);
  a.cpu_clock_counter = static_cast<std::uint64_t>(now.count());
  a.system_clock_counter = static_cast<std::uint64_t>(boot.tv_sec) * 1'000'000'000 +
                           static_cast<std::uint64_t>(boot.tv_nsec);
  a.system_clock_freq = 1'000'000'000;
  return 0;
}

template <>
int KfdProcess::handle(kfd_ioctl_get_tile_config_args& a) {
  a.num_tile_configs = a.num_macro_tile_configs = 0;
  a.gb_addr_config = 0x24000042;  // opaque to compute
  return 0;
}

template <>
int KfdProcess::handle(kfd_ioctl_get_available_memory_args& a) {
  ProcessGpu* gpu = gpu_with_id(a.gpu_id);
  if (gpu == nullptr) return EINVAL;
  SharedDevice::Access access(gpu->client().device());
  std::uint64_t used = 0;
  for (const Client& other : access.state().clients) used += other.vram_used;
  a.available = gpu->description().kfd_pool_bytes - used;
  return 0;
}

template <>
int KfdProcess::handle(kfd_ioctl_alloc_memory_of_gpu_args& a) {
  if (a.size == 0 && (a.flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL) == 0) return EINVAL;
  ProcessGpu* gpu = gpu_with_id(a.gpu_id);
  if (gpu == nullptr) return EINVAL;
  if (const int error = gpu->account(a.size, a.flags, true); error != 0) return error;
  const std::lock_guard lock(mutex_);
  a.handle = next_handle_++;
  buffers_[a.handle] = {a.size, a.flags, gpu};
  if ((a.flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR) != 0) return 0;
  a.mmap_offset = (a.flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL) != 0 ? doorbell_offset(*gpu) : 0;
  return 0;
}

template <>
int KfdProcess::handle(kfd_ioctl_free_memory_of_gpu_args& a) {
  Buffer buffer;
  {
    const std::lock_guard lock(mutex_);
    const auto it = buffers_.find(a.handle);
    if (it == buffers_.end()) return EINVAL;
    buffer = it->second;
    buffers_.erase(it);
  }
  return buffer.gpu->account(buffer.bytes, buffer.flags, false);
}

template <>
int KfdProcess::handle(kfd_ioctl_map_memory_to_gpu_args& a) {
  a.n_success = a.n_devices;
  return 0;
}

template <>
int KfdProcess::handle(kfd_ioctl_unmap_memory_from_gpu_args& a) {
  a.n_success = a.n_devices;
  return 0;
}

template <>
int KfdProcess::handle(kfd_ioctl_create_event_args& a) {
  a.event_id = events_.create(a.auto_reset != 0, a.event_type);
  // Who watches for the end of the GPU has an engine that notices it.
  if (a.event_type == KFD_IOC_EVENT_HW_EXCEPTION)
    for (const auto& gpu : gpus_) gpu->engine();
  if (a.event_id == 0) return ENOSPC;
  a.event_slot_index = a.event_trigger_data = a.event_id;
  a.event_page_offset = kEventPageOffset;
  return 0;
}

template <>
int KfdProcess::handle(kfd_ioctl_destroy_event_args& a) {
  return events_.destroy(a.event_id) ? 0 : EINVAL;
}

template <>
int KfdProcess::handle(kfd_ioctl_set_event_args& a) {
  if (!events_.set(a.event_id)) return EINVAL;
  // The host has changed a signal; a barrier may be waiting for it.
  for (const auto& gpu : gpus_) gpu->look_again();
  return 0;
}

template <>
int KfdProcess::handle(kfd_ioctl_reset_event_args& a) {
  return events_.reset(a.event_id) ? 0 : EINVAL;
}

template <>
int KfdProcess::handle(kfd_ioctl_wait_events_args& a) {
  auto* data = user_pointer<kfd_event_data>(a.events_ptr);
  std::vector<std::uint32_t> ids;
  for (std::uint32_t i = 0; i < a.num_events; i++) ids.push_back(data[i].event_id);
  // libhsakmt passes "for ever" as 0xffffffff, and what overflowed as one less.
  const auto timeout =
      a.timeout >= 0xfffffffe ? EventTable::kForever : std::chrono::milliseconds{a.timeout};
  std::vector<std::uint32_t> which;
  const WaitResult result = events_.wait(ids, a.wait_for_all != 0, timeout, &which);
  // Only of an event that was set: what ROCr 6 reads of another is a hang to it.
  if (result == WaitResult::signalled)
    for (std::uint32_t i = 0; i < a.num_events; i++)
      if (std::ranges::find(which, ids[i]) != which.end()) describe(data[i]);
  a.wait_result =
      result == WaitResult::timeout ? KFD_IOC_WAIT_RESULT_TIMEOUT : KFD_IOC_WAIT_RESULT_COMPLETE;
  return result == WaitResult::invalid ? EINVAL : 0;
}

template <>
int KfdProcess::handle(kfd_ioctl_create_queue_args& a) {
  // SDMA refused: ROCr then copies with its blit kernels.
  if (a.queue_type != KFD_IOC_QUEUE_TYPE_COMPUTE_AQL) return EINVAL;
  if (a.queue_percentage > KFD_MAX_QUEUE_PERCENTAGE || a.queue_priority > KFD_MAX_QUEUE_PRIORITY)
    return EINVAL;
  QueueRequest request;
  request.ring_address = a.ring_base_address;
  request.ring_bytes = a.ring_size;
  request.read_pointer_address = a.read_pointer_address;
  request.priority = priority_of(a.queue_priority);
  request.percent = a.queue_percentage;
  ProcessGpu* gpu = gpu_with_id(a.gpu_id);
  if (gpu == nullptr) return EINVAL;
  const auto queue = gpu->engine().create_queue(request);
  if (!queue) return ENOMEM;
  a.queue_id = queue->id;
  a.doorbell_offset = doorbell_offset(*gpu) | queue->doorbell * sizeof(std::uint64_t);
  const int error = gpu->client().tell(RequestKind::queue_created, queue->id, a.ring_size);
  if (error != 0) gpu->engine().destroy_queue(queue->id);
  return error;
}

template <>
int KfdProcess::handle(kfd_ioctl_update_queue_args& a) {
  if (a.queue_percentage > KFD_MAX_QUEUE_PERCENTAGE || a.queue_priority > KFD_MAX_QUEUE_PRIORITY)
    return EINVAL;
  ProcessGpu* gpu = gpu_of_queue(a.queue_id);
  if (gpu == nullptr) return EINVAL;
  return gpu->engine().update_queue(a.queue_id, a.queue_percentage, priority_of(a.queue_priority))
             ? 0
             : EINVAL;
}

template <>
int KfdProcess::handle(kfd_ioctl_set_cu_mask_args& a) {
  constexpr std::uint32_t kMaxBits = 1024;
  if (a.num_cu_mask == 0 || a.num_cu_mask % 32 != 0 || a.cu_mask_ptr == 0) return EINVAL;
  ProcessGpu* gpu = gpu_of_queue(a.queue_id);
  if (gpu == nullptr) return EINVAL;
  const auto* words = user_pointer<const std::uint32_t>(a.cu_mask_ptr);
  const std::uint32_t bits = std::min(a.num_cu_mask, kMaxBits);
  CuMask mask;
  for (std::uint32_t i = 0; i < bits; i++) {
    const bool on = (words[i / 32] >> (i % 32) & 1U) != 0;
    const bool partner = (words[i / 32] >> ((i ^ 1U) % 32) & 1U) != 0;
    // Workgroup processors are masked whole (pqm_update_mqd, gfx10 and later).
    if (gpu->description().gfx_major >= 10 && on != partner) return EINVAL;
    if (on && i < gpu->description().compute_units) mask.set(i);
  }
  // An all-zero mask is accepted, as the kernel does: the queue hangs.
  return gpu->engine().set_mask(a.queue_id, mask) ? 0 : EINVAL;
}

template <>
int KfdProcess::handle(kfd_ioctl_destroy_queue_args& a) {
  ProcessGpu* gpu = gpu_of_queue(a.queue_id);
  if (gpu == nullptr || !gpu->engine().destroy_queue(a.queue_id)) return EINVAL;
  return gpu->client().tell(RequestKind::queue_destroyed, a.queue_id);
}

template <>
int KfdProcess::handle(kfd_ioctl_set_xnack_mode_args& a) {
  // Negative: a query. Retry faults cannot be switched on with these chips.
  if (a.xnack_enabled > 0) return EPERM;
  a.xnack_enabled = 0;
  return 0;
}

template <>
int KfdProcess::handle(kfd_ioctl_svm_args& a) {
  // The GPU is a thread of this process: every range is mapped already, and stays where it is.
  return a.op == KFD_IOCTL_SVM_OP_SET_ATTR ? 0 : EINVAL;
}

int KfdProcess::ioctl(unsigned long request, void* argument) {
  if (const int error = refused(request, argument); error != 0) return error;
#define SOFTAPU_IOCTL(name, type)                                     \
  case _IOC_NR(AMDKFD_IOC_##name):                                    \
    return with_arguments<kfd_ioctl_##type##_args>(request, argument, \
                                                   [&](auto& a) { return handle(a); })
  switch (_IOC_NR(request)) {
    SOFTAPU_IOCTL(GET_VERSION, get_version);
    SOFTAPU_IOCTL(GET_PROCESS_APERTURES_NEW, get_process_apertures_new);
    SOFTAPU_IOCTL(GET_CLOCK_COUNTERS, get_clock_counters);
    SOFTAPU_IOCTL(GET_TILE_CONFIG, get_tile_config);
    SOFTAPU_IOCTL(AVAILABLE_MEMORY, get_available_memory);
    SOFTAPU_IOCTL(ALLOC_MEMORY_OF_GPU, alloc_memory_of_gpu);
    SOFTAPU_IOCTL(FREE_MEMORY_OF_GPU, free_memory_of_gpu);
    SOFTAPU_IOCTL(MAP_MEMORY_TO_GPU, map_memory_to_gpu);
    SOFTAPU_IOCTL(UNMAP_MEMORY_FROM_GPU, unmap_memory_from_gpu);
    SOFTAPU_IOCTL(CREATE_EVENT, create_event);
    SOFTAPU_IOCTL(DESTROY_EVENT, destroy_event);
    SOFTAPU_IOCTL(SET_EVENT, set_event);
    SOFTAPU_IOCTL(RESET_EVENT, reset_event);
    SOFTAPU_IOCTL(WAIT_EVENTS, wait_events);
    SOFTAPU_IOCTL(CREATE_QUEUE, create_queue);
    SOFTAPU_IOCTL(UPDATE_QUEUE, update_queue);
    SOFTAPU_IOCTL(SET_CU_MASK, set_cu_mask);
    SOFTAPU_IOCTL(DESTROY_QUEUE, destroy_queue);
    SOFTAPU_IOCTL(SET_XNACK_MODE, set_xnack_mode);
    case _IOC_NR(AMDKFD_IOC_SVM):  // ends in an array: not to be copied
      return handle(*static_cast<kfd_ioctl_svm_args*>(argument));
    case _IOC_NR(AMDKFD_IOC_SET_MEMORY_POLICY):
    case _IOC_NR(AMDKFD_IOC_ACQUIRE_VM):
    case _IOC_NR(AMDKFD_IOC_SET_TRAP_HANDLER):
    case _IOC_NR(AMDKFD_IOC_SET_SCRATCH_BACKING_VA):
      return 0;
    default:
      break;
  }
#undef SOFTAPU_IOCTL
  if (std::getenv("SOFTAPU_DEBUG") != nullptr)
    std::fprintf(stderr, "softapu: kfd ioctl %#lx is not answered\n", request);
  return EINVAL;
}

}  // namespace apusched::softapu
