// SPDX-License-Identifier: MIT
// The state behind the replaced libc functions of this process. Never destroyed: other libraries'
// exit handlers still use the device, in whatever order they run.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "face_kfd/descriptors.h"
#include "face_kfd/kfd_process.h"

namespace apusched::softapu {

class Face {
 public:
  static Face& instance();

  // Is this path ours to open? Only inside a session.
  [[nodiscard]] Target target_of(const char* path) const;
  // A new descriptor, or -1 with errno set.
  int open(Target target);
  // Another descriptor refers to the same open device.
  void duplicated(int from, int to);
  // Before the kernel forgets the number.
  void closing(int fd);
  int ioctl(int fd, unsigned long request, void* argument);
  // What fstat() tells of a device node; leaves alone what is none of ours.
  void describe(int fd, struct stat& status);
  // Before an attribute of the driver behind `fd` is read or written: waits where sysfs is slow.
  // 0, or the errno to fail with. 0 for any other descriptor. (attributes.cpp)
  int before_attribute(int fd);
  // The errno with which amdgpu refuses this text for the level; 0: it takes it.
  int refuse_level(int fd, const void* data, std::size_t bytes);
  // The same for a clock table. What it takes has no effect: not modelled.
  int refuse_clocks(int fd, const void* data, std::size_t bytes);
  // For the device behind fd; null when it is closed.
  std::shared_ptr<KfdProcess> process();

  Descriptors& descriptors() { return descriptors_; }

 private:
  Face();
  static void before_fork();
  static void after_fork_in_parent();
  static void after_fork_in_child();

  // What kind a file of this name is, by its last part: many ways lead to it.
  static DescriptorKind kind_of_attribute(std::string_view name);
  // The errno with which opening a device node fails now; 0: it does not.
  int refuse_open(Target target);
  // The number of the GPU that a path leads to: by its PCI address, card or render node. 0 where
  // none is named.
  [[nodiscard]] std::uint8_t gpu_in(std::string_view path) const;

  const char* session_;                                 // directory, null outside a session
  std::vector<std::unique_ptr<SharedDevice>> devices_;  // by number; empty outside a session
  Descriptors descriptors_;
  std::mutex mutex_;  // process_, open_count_
  std::shared_ptr<KfdProcess> process_;
  int open_count_ = 0;  // descriptors of /dev/kfd
};

}  // namespace apusched::softapu
