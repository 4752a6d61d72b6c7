// SPDX-License-Identifier: MIT
// The /sys tree of a model, as a directory: what does not move. sysfs/live.h has what does.
#pragma once

#include <filesystem>
#include <string>

#include "sysfs/model_file.h"

namespace apusched::softapu {

// Where things are below a session directory. All paths are absolute if `root` is.
struct TreePaths {
  TreePaths(const std::filesystem::path& root, const MachineModel& model);
  std::filesystem::path sys;
  std::filesystem::path device;  // the PCI device
  std::filesystem::path hwmon;
  std::filesystem::path kfd;   // class/kfd/kfd
  std::filesystem::path proc;  // kfd/proc
};

// Both throw std::filesystem::filesystem_error or std::system_error.
void put(const std::filesystem::path& file, const std::string& text);  // no newline added
void make_tree(const std::filesystem::path& root, const std::vector<MachineModel>& gpus);

}  // namespace apusched::softapu
