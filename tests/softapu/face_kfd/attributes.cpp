// SPDX-License-Identifier: MIT
// The attributes of the driver in sysfs, and the device nodes, under faults. Only system calls by
// number: the functions of the same names are replaced here.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>

#include "face_kfd/face.h"

namespace apusched::softapu {
namespace {

// Those of amdgpu_pm.c that ask the firmware, and therefore refuse while it cannot answer.
constexpr std::array<std::string_view, 6> kNames = {"gpu_busy_percent", "mem_busy_percent",
                                                    "power_dpm_state",  "pp_power_profile_mode",
                                                    "gpu_metrics",      "pp_dpm_mclk"};
constexpr std::array<std::string_view, 4> kHwmonPrefixes = {"temp", "power", "freq", "in"};

bool is_hwmon_reading(std::string_view name) {
  if (!name.ends_with("_input") && !name.ends_with("_average")) return false;
  for (const auto prefix : kHwmonPrefixes)
    if (name.starts_with(prefix)) return true;
  return false;
}

// Numbers of rows, as amdgpu_read_mask takes them.
bool is_list_of_rows(std::string_view text) {
  return text.find_first_not_of("0123456789 \n") == text.npos &&
         text.find_first_of("0123456789") != text.npos;
}

// The commands of amdgpu_set_pp_od_clk_voltage.
bool is_overdrive_command(std::string_view text) {
  for (const std::string_view command : {"s", "m", "r", "c", "vc", "vo", "p"})
    if (text.starts_with(command)) return true;
  return false;
}

void sleep_for(std::uint32_t milliseconds) {
  timespec left{milliseconds / 1000, static_cast<long>(milliseconds % 1000) * 1'000'000};
  // The kernel's mutexes are not interrupted by signals.
  while (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &left, &left) != 0 && errno == EINTR) {
  }
}

}  // namespace

DescriptorKind Face::kind_of_attribute(std::string_view name) {
  if (name == kLevelFileName) return DescriptorKind::level_file;
  if (name == "pp_dpm_sclk") return DescriptorKind::sclk_table;
  if (name == "pp_od_clk_voltage") return DescriptorKind::overdrive_table;
  for (const auto known : kNames)
    if (name == known) return DescriptorKind::attribute;
  return is_hwmon_reading(name) ? DescriptorKind::attribute : DescriptorKind::none;
}

int Face::before_attribute(int fd) {
  const auto [kind, gpu] = descriptors_.target(fd);
  if (gpu >= devices_.size() || !is_attribute(kind)) return 0;
  const FaultState& faults = devices_[gpu]->unlocked().faults;
  // sysfs asks the driver once for each time that a file is read from its beginning.
  if (faults.active.load() == 0 || syscall(SYS_lseek, fd, 0, SEEK_CUR) > 0) return 0;
  const int before = errno;
  if (faults.has(Fault::slow_sysfs)) sleep_for(faults.slow_ms.load());
  errno = before;
  if (faults.has(Fault::gone)) return ENODEV;
  return faults.has(Fault::resetting) || faults.has(Fault::suspended) ? EPERM : 0;
}

int Face::refuse_level(int fd, const void* data, std::size_t bytes) {
  const std::size_t gpu = descriptors_.target(fd).gpu;
  const auto level = parse_level(std::string_view(static_cast<const char*>(data), bytes));
  if (!level || gpu >= devices_.size()) return level ? 0 : EINVAL;
  const std::uint32_t allowed = devices_[gpu]->unlocked().description.allowed_levels;
  if (*level == Level::profile_exit && !is_profile(devices_[gpu]->unlocked().level)) return EINVAL;
  return (allowed >> static_cast<unsigned>(*level) & 1U) != 0 ? 0 : EINVAL;
}

// smu_force_ppclk_levels and each generation's od_edit_dpm_table: in level manual only, and the
// shader clock's rows not on APUs from gfx10 on.
int Face::refuse_clocks(int fd, const void* data, std::size_t bytes) {
  const auto [kind, gpu] = descriptors_.target(fd);
  const std::string_view text(static_cast<const char*>(data), bytes);
  if (gpu >= devices_.size()) return EINVAL;
  const DeviceState& state = devices_[gpu]->unlocked();
  if (state.level != Level::manual) return EINVAL;
  if (kind == DescriptorKind::overdrive_table) return is_overdrive_command(text) ? 0 : EINVAL;
  const bool takes_rows = state.description.gfx_major < 10 || state.description.discrete != 0;
  return takes_rows && is_list_of_rows(text) ? 0 : EINVAL;
}

int Face::refuse_open(Target target) {
  if (target.gpu >= devices_.size()) return 0;
  const auto any = [&](Fault fault) {
    return std::ranges::any_of(
        devices_, [fault](const auto& device) { return device->unlocked().faults.has(fault); });
  };
  // kfd_create_process: "KFD is locked", by the reset of any device; who has it open already only
  // gets another descriptor.
  if (target.kind == DescriptorKind::kfd && any(Fault::resetting)) return EINVAL;
  if (target.kind == DescriptorKind::kfd && devices_.size() > 1) return 0;
  return devices_[target.gpu]->unlocked().faults.has(Fault::gone) ? ENOENT : 0;
}

}  // namespace apusched::softapu
