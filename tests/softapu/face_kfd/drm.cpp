// SPDX-License-Identifier: MIT
// The render node: the few DRM ioctls with which libdrm_amdgpu makes its device handle, and so
// what libhsakmt 6 and ROCr 6 ask through it (family, APU or not, frequency of the counter).
#include "face_kfd/drm.h"

#include <dlfcn.h>
#include <drm/amdgpu_drm.h>
#include <drm/drm.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "face_kfd/face.h"
#include "queue/host_signals.h"

namespace apusched::softapu {
namespace {

int unanswered(const char* what, unsigned long number) {
  if (std::getenv("SOFTAPU_DEBUG") != nullptr)
    std::fprintf(stderr, "softapu: %s %#lx is not answered\n", what, number);
  return EINVAL;
}

// Copies at most `room` bytes and says how many there are, as the DRM core does.
void give_text(std::string_view text, char* out, __kernel_size_t& room) {
  if (out != nullptr) std::memcpy(out, text.data(), std::min<std::size_t>(room, text.size()));
  room = text.size();
}

int version(drm_version& v) {
  // Of the amdgpu driver of Linux 6.1.
  v.version_major = 3;
  v.version_minor = 49;
  v.version_patchlevel = 0;
  give_text("amdgpu", v.name, v.name_len);
  give_text("20150101", v.date, v.date_len);
  give_text("AMD GPU", v.desc, v.desc_len);
  return 0;
}

// AMDGPU_FAMILY_* of amdgpu_drm.h, where Debian 12's libdrm ends with Yellow Carp.
std::uint32_t family_of(const DeviceDescription& d) {
  constexpr std::uint32_t kFamilyGc1101 = 148;
  constexpr std::uint32_t kFamilyGc1150 = 150;
  const std::string_view gfx = d.gfx_name.data();
  if (gfx.starts_with("gfx115")) return kFamilyGc1150;
  if (d.gfx_major >= 11) return kFamilyGc1101;
  if (d.gfx_major == 10 && d.discrete != 0) return AMDGPU_FAMILY_NV;
  if (d.gfx_major == 10) return AMDGPU_FAMILY_YC;
  return gfx.starts_with("gfx94") ? AMDGPU_FAMILY_AI : AMDGPU_FAMILY_RV;
}

drm_amdgpu_info_device device_info(const DeviceDescription& d) {
  constexpr std::uint32_t kKhz = 1000;
  drm_amdgpu_info_device info{};
  info.device_id = d.pci_device;
  info.pci_rev = d.pci_revision;
  info.external_rev = 1;
  info.family = family_of(d);
  info.num_shader_engines = d.shader_engines;
  info.num_shader_arrays_per_engine = d.arrays_per_engine;
  info.gpu_counter_freq = static_cast<std::uint32_t>(kGpuCounterHz / kKhz);
  info.max_engine_clock = std::uint64_t{d.sclk.mhz[d.sclk.count - 1]} * kKhz;
  info.max_memory_clock = std::uint64_t{d.mclk.mhz[d.mclk.count - 1]} * kKhz;
  info.cu_active_number = d.compute_units;
  for (std::uint32_t array = 0; array < d.shader_engines * d.arrays_per_engine; array++) {
    const std::uint32_t engine = array / d.arrays_per_engine;
    if (engine >= 4 || array % d.arrays_per_engine >= 4) break;
    info.cu_bitmap[engine][array % d.arrays_per_engine] = (1U << d.units_per_array[array]) - 1;
  }
  info.num_rb_pipes = 1;
  info.enabled_rb_pipes_mask = 1;
  info.num_hw_gfx_contexts = 8;
  info.ids_flags = d.discrete != 0 ? 0 : AMDGPU_IDS_FLAGS_FUSION;
  // Address space as amdgpu_kms.c tells it, without what KFD keeps for itself.
  info.virtual_address_offset = 0x10000;
  info.virtual_address_max = 0x800000000000;
  info.virtual_address_alignment = 4096;
  info.gart_page_size = 4096;
  info.pte_fragment_size = 1U << 21;
  info.high_va_offset = 0xffff800000000000;
  info.high_va_max = 0xffffffffffe00000;
  info.vram_type = AMDGPU_VRAM_TYPE_DDR5;
  info.wave_front_size = d.wave_size;
  return info;
}

int info(const drm_amdgpu_info& query, const DeviceDescription& d) {
  const auto give = [&](const auto& value) {
    std::memcpy(reinterpret_cast<void*>(query.return_pointer), &value,  // NOLINT: uapi
                std::min<std::size_t>(query.return_size, sizeof value));
    return 0;
  };
  switch (query.query) {
    case AMDGPU_INFO_ACCEL_WORKING:
      return give(std::uint32_t{1});
    case AMDGPU_INFO_DEV_INFO:
      return give(device_info(d));
    case AMDGPU_INFO_READ_MMR_REG:
      // libdrm_amdgpu reads GB_ADDR_CONFIG of every chip, and hands it on to nobody here.
      return query.read_mmr_reg.count == 1 ? give(std::uint32_t{0x24000042}) : EINVAL;
    default:
      return unanswered("AMDGPU_INFO query", query.query);
  }
}

int answer(unsigned long request, void* argument, const DeviceDescription& description) {
  // drmCommandWrite() encodes the direction in its own way: only type and number tell the ioctl.
  constexpr unsigned kAmdgpuInfo = DRM_COMMAND_BASE + DRM_AMDGPU_INFO;
  if (_IOC_TYPE(request) != DRM_IOCTL_BASE) return ENOTTY;
  switch (_IOC_NR(request)) {
    case _IOC_NR(DRM_IOCTL_VERSION):
      return version(*static_cast<drm_version*>(argument));
    case kAmdgpuInfo:
      return info(*static_cast<const drm_amdgpu_info*>(argument), description);
    default:
      return unanswered("drm ioctl", request);
  }
}

}  // namespace

int drm_ioctl(unsigned long request, void* argument, std::size_t gpu) {
  const auto process = Face::instance().process();
  if (process == nullptr) return ENODEV;
  return answer(request, argument, process->description(gpu));
}

}  // namespace apusched::softapu

// libdrm_amdgpu would look the name up in a list of its own; this is the model's. Which GPU a
// handle is of, libdrm_amdgpu says by its descriptor, where it is loaded at all.
extern "C" __attribute__((visibility("default"))) const char* amdgpu_get_marketing_name(
    void* handle) {
  using apusched::softapu::Face;
  const auto process = Face::instance().process();
  if (process == nullptr) return nullptr;
  static auto* const get_fd =
      reinterpret_cast<int (*)(void*)>(dlsym(RTLD_DEFAULT, "amdgpu_device_get_fd"));
  const std::size_t gpu =
      get_fd == nullptr ? 0 : Face::instance().descriptors().target(get_fd(handle)).gpu;
  return process->description(gpu).marketing_name.data();
}
