// SPDX-License-Identifier: MIT
// The few functions of libdrm_amdgpu that libhsakmt 5.2.3 calls, for the marketing name. Replaced
// here because they would ask the render node for what it is (fstat, DRM ioctls).
#include <cerrno>
#include <cstdint>

#include "face_kfd/face.h"

#define SOFTAPU_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// Only its address means anything: "the software APU".
int handle;

}  // namespace

SOFTAPU_EXPORT int amdgpu_device_initialize(int fd, std::uint32_t* major, std::uint32_t* minor,
                                            void** device) {
  using apusched::softapu::DescriptorKind;
  using apusched::softapu::Face;
  if (Face::instance().descriptors().kind(fd) != DescriptorKind::render_node) return -ENODEV;
  // Of the amdgpu DRM driver of Linux 6.1.
  *major = 3;
  *minor = 49;
  *device = &handle;
  return 0;
}

SOFTAPU_EXPORT int amdgpu_device_deinitialize(void*) {
  return 0;
}

SOFTAPU_EXPORT const char* amdgpu_get_marketing_name(void*) {
  const auto process = apusched::softapu::Face::instance().process();
  return process == nullptr ? nullptr : process->description().marketing_name.data();
}
