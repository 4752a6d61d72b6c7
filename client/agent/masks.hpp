// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "agent/abi.hpp"

/// CU masks: values and pure functions.
namespace apusched::agent {

/// As the runtime takes it: bit i of word i / 32 enables a CU, those past `bits` are disabled.
struct CuMask {
  std::uint32_t bits = 0;  ///< a multiple of 32; 0: no mask, all CUs
  std::array<std::uint32_t, agent_abi::kMaxMaskWords> words{};

  bool operator==(const CuMask&) const = default;
};

/// `bits` at most 1024. Words past `bits` are zero, so that equal masks compare equal.
[[nodiscard]] CuMask mask_from(std::uint32_t bits, const std::uint32_t* words) noexcept;
/// The lowest `compute_units` CUs.
[[nodiscard]] CuMask all_of(std::uint32_t compute_units) noexcept;
/// What both enable; no mask enables all.
[[nodiscard]] CuMask both(const CuMask& one, const CuMask& other) noexcept;
/// Without CUs whose neighbour in an even-aligned pair is disabled.
[[nodiscard]] CuMask whole_pairs(const CuMask& mask) noexcept;
/// Enables nothing. The kernel takes such a mask, and the queue hangs.
[[nodiscard]] bool enables_none(const CuMask& mask) noexcept;

struct Effective {
  CuMask mask;            ///< to be set
  bool ours = false;      ///< it has to do with ours: else it is what the program asked for
  bool conflict = false;  ///< no CU would be left
};

/// `ours` and `program`: no mask where there is none; `base`: what HSA_CU_MASK left of the GPU,
/// with which the runtime combines every mask without a look at what remains. A half pair of ours
/// is dropped where the GPU has `pairs`; the program's are its own affair.
[[nodiscard]] Effective effective_mask(const CuMask& ours, const CuMask& program,
                                       const CuMask& base, bool pairs) noexcept;

}  // namespace apusched::agent
