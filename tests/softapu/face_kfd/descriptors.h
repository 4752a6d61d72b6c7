// SPDX-License-Identifier: MIT
// Which descriptors of this process are the software APU's. Lock-free, because close() is called
// from signal handlers and between fork and exec.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace apusched::softapu {

enum class DescriptorKind : std::uint8_t { none, kfd, render_node, level_file, attribute };

class Descriptors {
 public:
  // False: the number is beyond the table.
  bool add(int fd, DescriptorKind kind) {
    if (fd < 0 || static_cast<std::size_t>(fd) >= kinds_.size()) return false;
    kinds_[static_cast<std::size_t>(fd)].store(kind);
    return true;
  }
  [[nodiscard]] DescriptorKind kind(int fd) const {
    if (fd < 0 || static_cast<std::size_t>(fd) >= kinds_.size()) return DescriptorKind::none;
    return kinds_[static_cast<std::size_t>(fd)].load(std::memory_order_relaxed);
  }
  DescriptorKind remove(int fd) {
    if (kind(fd) == DescriptorKind::none) return DescriptorKind::none;
    return kinds_[static_cast<std::size_t>(fd)].exchange(DescriptorKind::none);
  }
  void clear() {
    for (auto& kind : kinds_) kind.store(DescriptorKind::none);
  }

 private:
  std::array<std::atomic<DescriptorKind>, 4096> kinds_{};
};

}  // namespace apusched::softapu
