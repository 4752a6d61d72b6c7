// SPDX-License-Identifier: MIT
#include "face_kfd/face.h"

#include <linux/memfd.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "face_kfd/drm.h"

namespace apusched::softapu {

Face& Face::instance() {
  alignas(Face) static std::byte storage[sizeof(Face)];
  static Face* const face = new (storage) Face;
  return *face;
}

Face::Face() : session_(std::getenv(kSessionVariable)) {
  // Now and not at first use: that may be in the child of a fork, where nothing may be locked.
  const std::size_t count = session_ == nullptr ? 0 : SessionClient::gpus(session_);
  for (std::size_t gpu = 0; gpu < count; gpu++) {
    auto device = SharedDevice::open(std::string(session_) + "/" + file_of(kStateFile, gpu));
    if (device == nullptr) break;
    devices_.push_back(std::move(device));
  }
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

Target Face::target_of(const char* path) const {
  constexpr std::string_view kRenderNode = "/dev/dri/renderD";
  if (session_ == nullptr || path == nullptr) return {};
  const std::string_view name(path);
  if (name == "/dev/kfd") return {DescriptorKind::kfd, 0};
  const DescriptorKind kind = name.starts_with(kRenderNode)
                                  ? DescriptorKind::render_node
                                  : kind_of_attribute(name.substr(name.rfind('/') + 1));
  if (kind == DescriptorKind::none) return {};
  return {kind, gpu_in(name)};
}

std::uint8_t Face::gpu_in(std::string_view path) const {
  for (std::size_t gpu = 1; gpu < devices_.size(); gpu++) {
    const DeviceDescription& d = devices_[gpu]->unlocked().description;
    const std::string card = "/card" + std::to_string(d.drm_card) + "/";
    const std::string render = "/renderD" + std::to_string(d.drm_render_minor);
    if (path.find(d.pci_address.data()) != path.npos || path.find(card) != path.npos ||
        path.find(render) != path.npos)
      return static_cast<std::uint8_t>(gpu);
  }
  return 0;
}

int Face::open(Target target) {
  const DescriptorKind kind = target.kind;
  if (const int error = refuse_open(target); error != 0) {
    errno = error;
    return -1;
  }
  const std::lock_guard lock(mutex_);
  if (kind == DescriptorKind::kfd && process_ == nullptr) {
    process_ = KfdProcess::open(session_);
    if (process_ == nullptr) {
      const int error = errno;
      std::fprintf(stderr, "softapu: cannot join the session at %s: %s\n", session_,
                   std::strerror(error));
      errno = ENODEV;
      return -1;
    }
  }
  const int fd = static_cast<int>(syscall(SYS_memfd_create, "softapu-device", MFD_CLOEXEC));
  if (fd < 0) return -1;
  if (!descriptors_.add(fd, target)) {
    syscall(SYS_close, fd);
    errno = EMFILE;
    return -1;
  }
  if (kind == DescriptorKind::kfd) open_count_++;
  return fd;
}

void Face::duplicated(int from, int to) {
  const Target target = descriptors_.target(from);
  if (to < 0 || from == to) return;
  closing(to);
  if (target.kind == DescriptorKind::none || !descriptors_.add(to, target)) return;
  const std::lock_guard lock(mutex_);
  if (target.kind == DescriptorKind::kfd) open_count_++;
}

void Face::closing(int fd) {
  if (descriptors_.remove(fd) != DescriptorKind::kfd) return;
  std::shared_ptr<KfdProcess> last;
  {
    const std::lock_guard lock(mutex_);
    if (--open_count_ > 0) return;
    last = std::move(process_);
    process_ = nullptr;
  }
  // A thread inside an ioctl keeps it alive until it returns.
  if (last != nullptr) last->end_waits();
}

std::shared_ptr<KfdProcess> Face::process() {
  const std::lock_guard lock(mutex_);
  return process_;
}

int Face::ioctl(int fd, unsigned long request, void* argument) {
  const auto device = process();
  int error = EBADF;
  if (descriptors_.kind(fd) != DescriptorKind::kfd)
    error = drm_ioctl(request, argument, descriptors_.target(fd).gpu);
  else if (device != nullptr)
    error = device->ioctl(request, argument);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

void Face::describe(int fd, struct stat& status) {
  constexpr unsigned kDrmMajor = 226;
  if (descriptors_.kind(fd) != DescriptorKind::render_node) return;
  const auto device = process();
  if (device == nullptr) return;
  status.st_mode = S_IFCHR | 0666;
  status.st_rdev =
      makedev(kDrmMajor, device->description(descriptors_.target(fd).gpu).drm_render_minor);
}

void Face::before_fork() {
  Face& face = instance();
  face.mutex_.lock();
  if (face.process_ != nullptr) face.process_->before_fork();
}

void Face::after_fork_in_parent() {
  Face& face = instance();
  if (face.process_ != nullptr) face.process_->after_fork_in_parent();
  face.mutex_.unlock();
}

void Face::after_fork_in_child() {
  Face& face = instance();
  if (face.process_ != nullptr) {
    face.process_->after_fork_in_child();
    // As with the real driver the device belongs to the parent. Not destroyed: that would join
    // threads which this process does not have.
    new std::shared_ptr<KfdProcess>(std::move(face.process_));
    face.process_ = nullptr;
  }
  face.open_count_ = 0;
  face.descriptors_.clear();
  face.mutex_.unlock();
}

}  // namespace apusched::softapu
