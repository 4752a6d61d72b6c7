// SPDX-License-Identifier: MIT
// A session directory: made, filled, described to programs through their environment, removed.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "sysfs/model_file.h"

namespace apusched::softapu {

// Libraries and models beside the running binary.
struct Installation {
  static Installation find();
  std::filesystem::path directory;
  [[nodiscard]] std::filesystem::path face() const { return directory / "libsoftapu-kfd.so"; }
  [[nodiscard]] std::filesystem::path model(const std::string& name) const {
    return directory / "models" / (name + ".json");
  }
};

class Session {
 public:
  // `path` empty: a new directory below TMPDIR, removed with its content at the end. A given one
  // keeps its tree. Throws std::system_error; EBUSY: it is served already.
  Session(const std::filesystem::path& path, const std::vector<MachineModel>& gpus);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
  // After the supervisor listens.
  void announce();

 private:
  void take_lock();
  void remove_content();
  std::filesystem::path directory_;
  bool temporary_;
  int lock_ = -1;
};

// What a program needs to live in the session, on top of this process's own environment.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> session_environment(
    const std::filesystem::path& directory, const Installation& installation);

}  // namespace apusched::softapu
