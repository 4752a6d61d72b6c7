// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "core/types.hpp"

/// Records between apuschedd and apusched-freezer: one per SOCK_SEQPACKET message, versioned. Pure.
namespace apusched::freezer {

inline constexpr std::uint32_t kMagic = 0x5a464150;  // "PAFZ" in memory
inline constexpr std::uint16_t kVersion = 1;
inline constexpr std::size_t kMaxPath = 512;  ///< as long as an id in the ledger

/// Stop a unit for this share of the time; 0: let it run. An order holds for a second only.
struct Order {
  std::uint64_t sequence = 0;
  core::FrozenShare share = core::FrozenShare::of<0>();
  std::string path;  ///< in the cgroup v2 tree
  bool operator==(const Order&) const = default;
};
struct Answer {
  std::uint64_t sequence = 0;
  std::int32_t error = 0;  ///< errno; EBUSY: somebody else freezes or thaws it
  bool operator==(const Answer&) const = default;
};

struct Header {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  std::uint16_t percent = 0;
  std::uint64_t sequence = 0;
  std::int32_t error = 0;
  std::uint32_t path_size = 0;
};
using Buffer =
    std::array<std::byte, sizeof(Header) + kMaxPath + 1>;  ///< one more shows a longer one

/// An absolute path without "." and "..", below the root of the tree.
[[nodiscard]] bool is_group_path(std::string_view path);

/// The part of `buffer` to send. The path is a good one (`is_group_path`).
[[nodiscard]] std::span<const std::byte> encode(const Order& order, Buffer& buffer);
[[nodiscard]] std::span<const std::byte> encode(const Answer& answer, Buffer& buffer);
/// `invalid_input` names what is wrong.
[[nodiscard]] core::Result<Order> decode_order(std::span<const std::byte> bytes);
[[nodiscard]] core::Result<Answer> decode_answer(std::span<const std::byte> bytes);

}  // namespace apusched::freezer
