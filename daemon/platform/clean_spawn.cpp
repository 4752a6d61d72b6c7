// SPDX-License-Identifier: MIT
#include "platform/clean_spawn.hpp"

#include <fcntl.h>
#include <spawn.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "platform/errno_error.hpp"

namespace apusched::platform {
namespace {

constexpr int kFirstOther = 3;

class SpawnSettings {
 public:
  explicit SpawnSettings(const std::vector<GivenFd>& given) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    int first_other = kFirstOther;
    for (const auto& fd : given) {
      posix_spawn_file_actions_adddup2(&actions, fd.ours, fd.its);
      first_other = std::max(first_other, fd.its + 1);
    }
    posix_spawn_file_actions_addclosefrom_np(&actions, first_other);
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
};

}  // namespace

core::Result<int> spawn_clean(std::vector<std::string> words, const std::vector<GivenFd>& given) {
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::string path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
  const std::array<char*, 2> environment{path.data(), nullptr};
  const SpawnSettings settings(given);
  int pid = 0;
  const int error = posix_spawn(&pid, arguments.front(), &settings.actions, &settings.attributes,
                                arguments.data(), environment.data());
  if (error == 0) return pid;
  auto failure = errno_error(error, "start", words.front());
  failure.code = core::ErrorCode::failed;
  return tl::unexpected(failure);
}

}  // namespace apusched::platform
