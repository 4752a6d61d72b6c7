// SPDX-License-Identifier: MIT
// Whoever owns a process writes these texts, or sysfs: any bytes, no crash, nothing out of range.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/energy.hpp"
#include "platform/proc_parse.hpp"
#include "platform/procfs_meters.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace apusched::platform;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto stat = parse_stat(text))
    if (stat->comm.size() > size || stat->nice.value() < -20 || stat->nice.value() > 19)
      std::abort();
  if (const auto group = parse_autogroup(text))
    if (!group->name.starts_with("/autogroup-")) std::abort();
  const auto groups = parse_cgroup(text);
  for (const auto& path : {groups.unified, groups.cpu_v1})
    if (path && (!path->starts_with('/') || path->find("/../") != std::string::npos)) std::abort();
  static_cast<void>(parse_pidfd_info(text));
  static_cast<void>(parse_schedstat_run(text));
  static_cast<void>(parse_schedstat(text));
  static_cast<void>(parse_runnable(text));
  static_cast<void>(parse_machine_stat(text, 100));
  static_cast<void>(parse_children(text));
  static_cast<void>(parse_status_uid(text));
  if (const auto cpus = apusched::core::parse_cpu_numbers(text); cpus && cpus->none()) std::abort();
  if (const auto energy = apusched::core::EnergyPreference::parse(text))
    if (apusched::core::EnergyPreference::parse(energy->text()) != energy) std::abort();
  static_cast<void>(parse_status_tgid(text));
  return 0;
}
