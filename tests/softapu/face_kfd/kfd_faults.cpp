// SPDX-License-Identifier: MIT
// What ioctls answer after a reset or a removal, and without memory. Sources: ../FIDELITY.md.
#include <linux/kfd_ioctl.h>

#include <cerrno>

#include "face_kfd/kfd_process.h"

namespace apusched::softapu {
namespace {

// By number: the size in a request differs between ages of the header.
// Giving things back always works: a process can clean up whatever happened to the GPU.
bool needs_hardware(unsigned long request) {
  switch (_IOC_NR(request)) {
    case _IOC_NR(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU):
    case _IOC_NR(AMDKFD_IOC_MAP_MEMORY_TO_GPU):
    case _IOC_NR(AMDKFD_IOC_CREATE_QUEUE):
    case _IOC_NR(AMDKFD_IOC_UPDATE_QUEUE):
    case _IOC_NR(AMDKFD_IOC_SET_CU_MASK):
      return true;
    default:
      return false;
  }
}

bool is_lost(const ProcessGpu& gpu) {
  const auto index = static_cast<std::uint32_t>(gpu.client().index());
  return gpu.state().clients[index].losses != gpu.state().faults.losses.load();
}

bool needs_memory(unsigned long request) {
  return _IOC_NR(request) == _IOC_NR(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU) ||
         _IOC_NR(request) == _IOC_NR(AMDKFD_IOC_CREATE_QUEUE);
}

}  // namespace

std::vector<const ProcessGpu*> KfdProcess::gpus_of(unsigned long request, const void* argument) {
  std::vector<const ProcessGpu*> out;
  const auto add = [&](const ProcessGpu* gpu) {
    if (gpu != nullptr) out.push_back(gpu);
  };
  switch (_IOC_NR(request)) {
    case _IOC_NR(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU):
      add(gpu_with_id(static_cast<const kfd_ioctl_alloc_memory_of_gpu_args*>(argument)->gpu_id));
      break;
    case _IOC_NR(AMDKFD_IOC_MAP_MEMORY_TO_GPU): {
      const auto& map = *static_cast<const kfd_ioctl_map_memory_to_gpu_args*>(argument);
      const auto* ids = reinterpret_cast<const std::uint32_t*>(  // NOLINT: as the uapi has it
          map.device_ids_array_ptr);
      for (std::uint32_t i = 0; ids != nullptr && i < map.n_devices; i++) add(gpu_with_id(ids[i]));
      break;
    }
    case _IOC_NR(AMDKFD_IOC_CREATE_QUEUE):
      add(gpu_with_id(static_cast<const kfd_ioctl_create_queue_args*>(argument)->gpu_id));
      break;
    case _IOC_NR(AMDKFD_IOC_UPDATE_QUEUE):
      add(gpu_of_queue(static_cast<const kfd_ioctl_update_queue_args*>(argument)->queue_id));
      break;
    case _IOC_NR(AMDKFD_IOC_SET_CU_MASK):
      add(gpu_of_queue(static_cast<const kfd_ioctl_set_cu_mask_args*>(argument)->queue_id));
      break;
    default:
      break;
  }
  return out;
}

int KfdProcess::refused(unsigned long request, const void* argument) {
  if (!needs_hardware(request)) return 0;
  for (const ProcessGpu* gpu : gpus_of(request, argument)) {
    const FaultState& faults = gpu->state().faults;
    if (faults.has(Fault::gone)) return ENODEV;
    if (is_lost(*gpu)) return EIO;
    if (needs_memory(request) && faults.has(Fault::no_memory)) return ENOMEM;
  }
  return 0;
}

void KfdProcess::describe(kfd_event_data& data) {
  if (!events_.is_of_type(data.event_id, EventTable::kHwException)) return;
  for (const auto& gpu : gpus_)
    if (is_lost(*gpu))
      data.hw_exception_data = {KFD_HW_EXCEPTION_WHOLE_GPU_RESET, KFD_HW_EXCEPTION_GPU_HANG, 1,
                                gpu->description().gpu_id};
}

}  // namespace apusched::softapu
