// SPDX-License-Identifier: MIT
#include <sys/prctl.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "gpu_helper/helper.hpp"

namespace {

using apusched::gpu_helper::ExitCode;

bool is_seqpacket_socket(int fd) {
  int type = 0;
  socklen_t size = sizeof(type);
  return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

int usage_error(const char* text) {
  std::fprintf(stderr, "apusched-gpu-helper: %s\n", text);
  return static_cast<int>(ExitCode::usage);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"GPU probe and readings of apuschedd; started by the daemon, not by hand"};
  std::string gpu;
  std::string sysfs_root = "/sys";
  int fd = 3;
  bool no_rsmi = false;
  app.add_option("--gpu", gpu, "PCI address, e.g. 0000:04:00.0")->required();
  app.add_option("--fd", fd, "SOCK_SEQPACKET socket to the daemon")->check(CLI::Range(0, 1 << 20));
  app.add_option("--sysfs-root", sysfs_root, "where sysfs is mounted");
  app.add_flag("--no-rsmi", no_rsmi, "do not use rocm-smi-lib");
  app.set_version_flag("--version", APUSCHED_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::usage);
  }
  const auto address = apusched::core::PciAddress::parse(gpu);
  if (!address) return usage_error("--gpu: expected a PCI address like 0000:04:00.0");
  if (!is_seqpacket_socket(fd)) return usage_error("--fd: not a SOCK_SEQPACKET socket");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    apusched::gpu_helper::Helper helper({*address, fd, sysfs_root, !no_rsmi});
    return static_cast<int>(helper.run());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "apusched-gpu-helper: %s\n", error.what());
    return static_cast<int>(ExitCode::internal);
  }
}
