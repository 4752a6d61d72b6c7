// SPDX-License-Identifier: MIT
// The part of the supervisor that shows faults in the tree.
#include "launcher/supervisor.h"

namespace apusched::softapu {
namespace fs = std::filesystem;

// As after a PCI remove: the device with all its ways to it, its device nodes, its KFD node.
std::vector<fs::path> Supervisor::files_of_the_device() const {
  const fs::path sys = directory_ / "sys";
  const std::string address = paths_.device.filename().string();
  const std::string render = "renderD" + std::to_string(description_.drm_render_minor);
  std::vector<fs::path> files = {sys / "bus/pci/devices" / address,
                                 sys / "bus/pci/drivers/amdgpu" / address,
                                 sys / "class/drm" / ("card" + std::to_string(card_)),
                                 sys / "class/drm" / render,
                                 sys / "class/hwmon" / paths_.hwmon.filename(),
                                 paths_.kfd / "topology/nodes" / std::to_string(gpu_ + 1),
                                 directory_ / "dev/dri" / render,
                                 paths_.device};
  if (gpu_ == 0 && others_.empty()) files.push_back(directory_ / "dev/kfd");
  return files;
}

void Supervisor::on_faults() {
  std::vector<fs::path> wanted;
  Level level{};
  bool gone = false;
  {
    SharedDevice::Access access(*device_);
    const FaultState& faults = access.state().faults;
    level = access.state().level;
    gone = faults.has(Fault::gone);
    for (const auto& name : faults.vanished)
      if (name[0] != '\0') wanted.push_back(paths_.device / name.data());
  }
  if (gone) {
    for (auto& path : files_of_the_device()) wanted.push_back(std::move(path));
    for (auto& [fd, connection] : connections_)
      for (const std::uint32_t queue : std::exchange(connection.queues, {}))
        tree_.remove_queue(connection.pid, queue);
  }
  hidden_.hide_only(wanted);
  if (fs::exists(tree_.level_file())) tree_.show_level(level);
}

}  // namespace apusched::softapu
