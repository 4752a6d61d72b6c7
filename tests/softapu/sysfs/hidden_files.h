// SPDX-License-Identifier: MIT
// Parts of the tree that are not there for a while. Owner: the supervisor.
#pragma once

#include <filesystem>
#include <utility>
#include <vector>

namespace apusched::softapu {

class HiddenFiles {
 public:
  // `stash`: a directory on the same file system, made when needed.
  explicit HiddenFiles(std::filesystem::path stash) : stash_(std::move(stash)) {}

  // Hides these files, links and directories, and brings back all others. One that is not there
  // stays so.
  void hide_only(const std::vector<std::filesystem::path>& wanted);

 private:
  struct Hidden {
    std::filesystem::path place, kept;
  };
  std::filesystem::path stash_;
  std::vector<Hidden> hidden_;
  unsigned next_ = 0;
};

}  // namespace apusched::softapu
