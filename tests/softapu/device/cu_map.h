// SPDX-License-Identifier: MIT
// Where the compute unit of a bit in a CU mask lies. The order is the kernel's
// (linux drivers/gpu/drm/amd/amdkfd/kfd_mqd_manager.c, mqd_symmetrically_map_cu_mask): bits are
// dealt over the XCCs, then over the engines, then over their arrays, then over the units of an
// array; from gfx10 on in pairs, a WGP each.
#pragma once

#include <cstdint>
#include <vector>

#include "device/state.h"

namespace apusched::softapu {

struct CuPlace {
  std::uint32_t engine = 0;  // of the whole device: XCC * shader_engines + shader engine
  std::uint32_t array = 0;   // of the engine
  std::uint32_t unit = 0;    // of the array
  bool operator==(const CuPlace&) const = default;
};

// One place for each bit. With more than one XCC, engines, arrays and units are those of each.
[[nodiscard]] std::vector<CuPlace> cu_places(const DeviceDescription& device);

// Fills in `engine_of_cu`, and `units_per_array` where the model file leaves the units to be spread
// evenly. False: the geometry does not give `compute_units`.
[[nodiscard]] bool place_units(DeviceDescription& device);

}  // namespace apusched::softapu
