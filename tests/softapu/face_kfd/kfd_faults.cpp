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

bool needs_memory(unsigned long request) {
  return _IOC_NR(request) == _IOC_NR(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU) ||
         _IOC_NR(request) == _IOC_NR(AMDKFD_IOC_CREATE_QUEUE);
}

}  // namespace

int KfdProcess::refused(unsigned long request) {
  // Faults are of the first GPU.
  const DeviceState& state = gpus_[0]->state();
  const Client& me = state.clients[static_cast<std::uint32_t>(gpus_[0]->client().index())];
  if (needs_hardware(request)) {
    if (state.faults.has(Fault::gone)) return ENODEV;
    if (me.losses != state.faults.losses.load()) return EIO;
  }
  return needs_memory(request) && state.faults.has(Fault::no_memory) ? ENOMEM : 0;
}

void KfdProcess::describe(kfd_event_data& data) {
  if (!events_.is_of_type(data.event_id, EventTable::kHwException)) return;
  data.hw_exception_data = {KFD_HW_EXCEPTION_WHOLE_GPU_RESET, KFD_HW_EXCEPTION_GPU_HANG, 1,
                            description(0).gpu_id};
}

}  // namespace apusched::softapu
