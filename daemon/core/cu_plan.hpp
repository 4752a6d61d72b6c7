// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/cu_mask.hpp"
#include "core/types.hpp"

namespace apusched::core {

/// How the CUs of one GPU hang together, from its KFD topology node.
struct CuGeometry {
  std::uint32_t compute_units = 0;
  std::uint32_t engines = 1;            ///< shader engines of one XCC
  std::uint32_t arrays_per_engine = 1;  ///< shader arrays
  std::uint32_t xccs = 1;
  bool paired = false;  ///< gfx10 and later: two CUs are one WGP and are masked together

  bool operator==(const CuGeometry&) const = default;
};

/// CUs are handed out in units: as many mask bits in a row as give each engine of each XCC one CU,
/// or one pair. Workgroups are dealt evenly to the engines whatever CUs are enabled, so a mask with
/// more on one engine than on another runs as slowly as the smaller one.
[[nodiscard]] std::uint32_t cus_per_unit(const CuGeometry& geometry);
/// At least 1, where there is a CU at all. The last unit has what is left over.
[[nodiscard]] std::uint32_t unit_count(const CuGeometry& geometry);

/// What one holder asks of a GPU.
struct CuDemand {
  RegistrationId holder;
  CuWeight weight = CuWeight::of<100>();
  bool exclusive = false;        ///< CUs that nobody else is given
  std::optional<Percent> limit;  ///< at most this share of the GPU, but one unit in any case
};

/// A holder that is given every CU is in it too, with a full mask.
using CuPlan = std::map<RegistrationId, CuMask>;

/// Who gets which CUs. Exclusive holders get a share in proportion to their weight, disjoint from
/// all others; the rest share what is left, whose size follows from the sum of their weights.
/// Everybody gets at least one unit. Where there are fewer units than that takes, the lightest
/// exclusive ones (the youngest of equals) are treated as sharing ones.
/// Stable: a holder keeps the units it has in `previous` as far as its share allows, so that few
/// queues have to be mapped anew. Every mask has as many CUs on one engine as on any other but for
/// what the last, smaller unit adds. Empty for a GPU without CUs.
[[nodiscard]] CuPlan plan_cus(const CuGeometry& geometry, const std::vector<CuDemand>& demands,
                              const CuPlan& previous);

}  // namespace apusched::core
