// SPDX-License-Identifier: MIT
#include "device/cu_map.h"

#include <algorithm>

namespace apusched::softapu {
namespace {

constexpr std::uint32_t kFirstWithPairs = 10;  // gfx10: RDNA

}  // namespace

std::vector<CuPlace> cu_places(const DeviceDescription& device) {
  const std::uint32_t step = device.gfx_major >= kFirstWithPairs ? 2 : 1;
  std::vector<CuPlace> places;
  for (std::uint32_t unit = 0; unit < kMaxComputeUnits; unit += step)
    for (std::uint32_t array = 0; array < device.arrays_per_engine; array++)
      for (std::uint32_t engine = 0; engine < device.shader_engines; engine++) {
        if (unit >= device.units_per_array[engine * device.arrays_per_engine + array]) continue;
        // With several XCCs neighbouring bits, or pairs, belong to neighbouring XCCs.
        for (std::uint32_t xcc = 0; xcc < device.xccs; xcc++)
          for (std::uint32_t of_pair = 0; of_pair < step; of_pair++)
            places.push_back({xcc * device.shader_engines + engine, array, unit + of_pair});
      }
  return places;
}

bool place_units(DeviceDescription& device) {
  const std::uint32_t arrays = device.shader_engines * device.arrays_per_engine;
  if (arrays == 0 || arrays > kMaxArrays || device.xccs == 0 ||
      device.xccs * device.shader_engines > kMaxEngines)
    return false;
  auto& units = device.units_per_array;
  if (std::ranges::all_of(units, [](std::uint32_t count) { return count == 0; }))
    std::fill_n(units.begin(), arrays, device.compute_units / (arrays * device.xccs));
  const bool pairs = device.gfx_major >= kFirstWithPairs;
  if (pairs && std::ranges::any_of(units, [](std::uint32_t count) { return count % 2 != 0; }))
    return false;
  const auto places = cu_places(device);
  if (places.size() != device.compute_units || places.size() > kMaxComputeUnits) return false;
  for (std::size_t bit = 0; bit < places.size(); bit++)
    device.engine_of_cu[bit] = static_cast<std::uint8_t>(places[bit].engine);
  return true;
}

}  // namespace apusched::softapu
