// SPDX-License-Identifier: MIT
// Which descriptors of this process are the software APU's. Lock-free, because close() is called
// from signal handlers and between fork and exec.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace apusched::softapu {

enum class DescriptorKind : std::uint8_t {
  none,
  kfd,
  render_node,
  level_file,
  sclk_table,       // pp_dpm_sclk
  overdrive_table,  // pp_od_clk_voltage
  attribute,        // another of the driver's
};
[[nodiscard]] constexpr bool is_attribute(DescriptorKind kind) {
  return kind >= DescriptorKind::level_file;
}

// What is behind a path or a descriptor, and the number of the GPU that it belongs to.
struct Target {
  DescriptorKind kind = DescriptorKind::none;
  std::uint8_t gpu = 0;
};

class Descriptors {
 public:
  // False: the number is beyond the table.
  bool add(int fd, Target target) {
    if (fd < 0 || static_cast<std::size_t>(fd) >= targets_.size()) return false;
    targets_[static_cast<std::size_t>(fd)].store(target);
    return true;
  }
  [[nodiscard]] Target target(int fd) const {
    if (fd < 0 || static_cast<std::size_t>(fd) >= targets_.size()) return {};
    return targets_[static_cast<std::size_t>(fd)].load(std::memory_order_relaxed);
  }
  [[nodiscard]] DescriptorKind kind(int fd) const { return target(fd).kind; }
  DescriptorKind remove(int fd) {
    if (kind(fd) == DescriptorKind::none) return DescriptorKind::none;
    return targets_[static_cast<std::size_t>(fd)].exchange(Target{}).kind;
  }
  void clear() {
    for (auto& target : targets_) target.store(Target{});
  }

 private:
  std::array<std::atomic<Target>, 4096> targets_{};
};

}  // namespace apusched::softapu
