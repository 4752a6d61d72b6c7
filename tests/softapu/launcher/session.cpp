// SPDX-License-Identifier: MIT
#include "launcher/session.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "session/layout.h"
#include "sysfs/tree.h"

namespace apusched::softapu {
namespace fs = std::filesystem;
namespace {

// Everything a session puts into its directory.
constexpr const char* kContent[] = {kReadyFile, kControlSocket, kStateFile, kHiddenFiles,
                                    "sys",      "dev",          "bin"};

std::system_error failure(const std::string& what) {
  return {errno, std::generic_category(), what};
}

fs::path make_directory(const fs::path& wanted) {
  if (!wanted.empty()) {
    fs::create_directories(wanted);
    return fs::canonical(wanted);
  }
  const char* base = std::getenv("TMPDIR");
  std::string name =
      std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/softapu-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) throw failure(name);
  return fs::canonical(name);
}

// rocminfo asks `lsmod` whether amdgpu is there.
void make_tools(const fs::path& directory) {
  const fs::path bin = directory / "bin";
  fs::create_directories(bin);
  put(bin / "lsmod",
      "#!/bin/sh\n"
      "echo 'Module                  Size  Used by'\n"
      "echo 'amdgpu              9400320  4'\n");
  fs::permissions(bin / "lsmod", fs::perms(0755));
}

// umockdev answers stat() and access() of device nodes from here; opening them is ours.
void make_device_nodes(const fs::path& directory, const std::vector<MachineModel>& gpus) {
  fs::create_directories(directory / "dev/dri");
  std::vector<std::string> nodes = {"kfd"};
  for (const MachineModel& model : gpus)
    nodes.push_back("dri/renderD" + std::to_string(model.device.drm_render_minor));
  for (const std::string& node : nodes) {
    put(directory / "dev" / node, "");
    fs::permissions(directory / "dev" / node, fs::perms(0666));
  }
}

}  // namespace

Installation Installation::find() {
  return {fs::read_symlink("/proc/self/exe").parent_path()};
}

Session::Session(const fs::path& path, const std::vector<MachineModel>& gpus)
    : directory_(make_directory(path)), temporary_(path.empty()) {
  // Clients of any user: mkdtemp made it private.
  fs::permissions(directory_, fs::perms(0755));
  take_lock();
  remove_content();
  const mode_t old = ::umask(022);
  make_tree(directory_, gpus);
  make_tools(directory_);
  make_device_nodes(directory_, gpus);
  ::umask(old);
}

void Session::take_lock() {
  const fs::path file = directory_ / kLockFile;
  lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_ < 0) throw failure(file.string());
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  ::close(lock_);
  errno = error == EWOULDBLOCK ? EBUSY : error;
  throw failure(directory_.string());
}

void Session::announce() {
  put(directory_ / kReadyFile, std::to_string(getpid()) + "\n");
}

void Session::remove_content() {
  for (const char* name : kContent)
    for (std::size_t gpu = 0; gpu < kMaxGpus; gpu++)
      fs::remove_all(directory_ / file_of(name, gpu));
}

Session::~Session() {
  std::error_code ignored;
  fs::remove(directory_ / kReadyFile, ignored);
  for (std::size_t gpu = 0; gpu < kMaxGpus; gpu++)
    fs::remove(directory_ / file_of(kControlSocket, gpu), ignored);
  if (temporary_) fs::remove_all(directory_, ignored);
  ::close(lock_);
}

std::vector<std::pair<std::string, std::string>> session_environment(
    const fs::path& directory, const Installation& installation) {
  const auto old = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  // Our library first: umockdev's would not find /dev/kfd and hsa_init fails.
  std::string preload = installation.face().string() + ":libumockdev-preload.so.0";
  if (!old("LD_PRELOAD").empty()) preload += ":" + old("LD_PRELOAD");
  return {{kSessionVariable, directory.string()},
          {"UMOCKDEV_DIR", directory.string()},
          {"LD_PRELOAD", preload},
          {"PATH", (directory / "bin").string() + ":" + old("PATH")}};
}

}  // namespace apusched::softapu
