// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace apusched::core {

/// A set of CUs in the order of the runtime's and amdkfd's mask bits. amdkfd deals the bits over
/// XCCs, then shader engines, then arrays (mqd_symmetrically_map_cu_mask in kfd_mqd_manager.c), so
/// that low bits in a row are balanced over the engines.
class CuMask {
 public:
  static constexpr std::uint32_t kMaxBits = 1024;  ///< amdkfd takes no more
  static constexpr std::uint32_t kWordBits = 32;

  CuMask() = default;
  /// The first `count` CUs; more than kMaxBits count as kMaxBits.
  [[nodiscard]] static CuMask first(std::uint32_t count);

  void set(std::uint32_t bit);
  [[nodiscard]] bool test(std::uint32_t bit) const;
  [[nodiscard]] std::uint32_t count() const;
  [[nodiscard]] bool empty() const { return count() == 0; }
  [[nodiscard]] bool intersects(const CuMask& other) const;
  [[nodiscard]] std::uint32_t word(std::size_t index) const { return words_.at(index); }
  /// "0x00ff", as few digits as `bits` CUs need.
  [[nodiscard]] std::string to_hex(std::uint32_t bits) const;

  bool operator==(const CuMask&) const = default;

 private:
  std::array<std::uint32_t, kMaxBits / kWordBits> words_{};
};

}  // namespace apusched::core
