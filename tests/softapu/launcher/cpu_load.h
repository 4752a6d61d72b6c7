// SPDX-License-Identifier: MIT
// How busy the CPUs are, for the power that they take from the package.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace apusched::softapu {

class CpuLoad {
 public:
  // A fixed load of 0..1.
  explicit CpuLoad(double fixed = 0) : fixed_(fixed) {}
  [[nodiscard]] static CpuLoad measured();
  // "measured" or a number; nothing for anything else.
  [[nodiscard]] static std::optional<CpuLoad> parse(std::string_view text);

  [[nodiscard]] bool is_measured() const { return measured_; }
  // 0..1 since the last call; of the real machine if measured (/proc/stat).
  double sample();

 private:
  double fixed_;
  bool measured_ = false;
  double last_ = 0;
  std::uint64_t busy_ = 0;
  std::uint64_t all_ = 0;
};

}  // namespace apusched::softapu
