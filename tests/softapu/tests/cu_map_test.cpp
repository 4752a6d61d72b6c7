// SPDX-License-Identifier: MIT
// Vectors worked out from mqd_symmetrically_map_cu_mask of the kernel (kfd_mqd_manager.c).
#include "device/cu_map.h"

#include <gtest/gtest.h>

#include "tests/fixtures.h"

namespace apusched::softapu {
namespace {

using EngineMasks = std::vector<std::uint32_t>;

DeviceDescription chip(std::uint32_t gfx_major, std::uint32_t engines, std::uint32_t arrays,
                       std::uint32_t units) {
  DeviceDescription d = small_device();
  d.gfx_major = gfx_major;
  d.shader_engines = engines;
  d.arrays_per_engine = arrays;
  d.compute_units = units;
  d.units_per_array = {};
  EXPECT_TRUE(place_units(d));
  return d;
}

DeviceDescription cezanne() {
  return chip(9, 1, 1, 8);
}
DeviceDescription rembrandt() {
  return chip(10, 1, 2, 12);
}
DeviceDescription strix() {
  return chip(11, 1, 2, 16);
}
DeviceDescription strix_halo() {
  return chip(11, 2, 2, 40);
}
DeviceDescription mi300a() {
  DeviceDescription d = chip(9, 4, 1, 40);
  d.xccs = 6;
  d.units_per_array = {10, 10, 9, 9};
  d.compute_units = 228;
  EXPECT_TRUE(place_units(d));
  return d;
}

// What lands in the register of each engine: 16 bits for each array.
template <typename InMask>
EngineMasks mapped(const DeviceDescription& d, InMask in_mask) {
  EngineMasks masks(std::size_t{d.xccs} * d.shader_engines);
  const auto places = cu_places(d);
  for (std::uint32_t bit = 0; bit < places.size(); bit++)
    if (in_mask(bit))
      masks[places[bit].engine] |= 1U << (places[bit].array * 16 + places[bit].unit);
  return masks;
}
EngineMasks first(std::uint32_t count, const DeviceDescription& d) {
  return mapped(d, [&](std::uint32_t bit) { return bit < count; });
}
EngineMasks mask(std::uint64_t bits, const DeviceDescription& d) {
  return mapped(d, [&](std::uint32_t bit) { return (bits >> bit & 1U) != 0; });
}

TEST(CuMap, fills_the_only_array_in_order) {
  EXPECT_EQ(first(2, cezanne()), (EngineMasks{0x3}));
  EXPECT_EQ(first(8, cezanne()), (EngineMasks{0xff}));
}

TEST(CuMap, deals_pairs_to_the_arrays_in_turn) {
  EXPECT_EQ(first(2, rembrandt()), (EngineMasks{0x00000003}));
  EXPECT_EQ(first(6, rembrandt()), (EngineMasks{0x0003000f}));
  EXPECT_EQ(first(8, rembrandt()), (EngineMasks{0x000f000f}));
  EXPECT_EQ(first(12, rembrandt()), (EngineMasks{0x003f003f}));
  EXPECT_EQ(first(4, strix()), (EngineMasks{0x00030003}));
  EXPECT_EQ(first(16, strix()), (EngineMasks{0x00ff00ff}));
}

TEST(CuMap, deals_pairs_to_the_engines_first) {
  EXPECT_EQ(first(10, strix_halo()), (EngineMasks{0x0003000f, 0x00030003}));
  EXPECT_EQ(first(20, strix_halo()), (EngineMasks{0x000f003f, 0x000f003f}));
  EXPECT_EQ(first(30, strix_halo()), (EngineMasks{0x00ff00ff, 0x003f00ff}));
  EXPECT_EQ(first(40, strix_halo()), (EngineMasks{0x03ff03ff, 0x03ff03ff}));
}

TEST(CuMap, puts_every_second_pair_on_one_engine_of_strix_halo) {
  EXPECT_EQ(mask(0x3333333333, strix_halo()), (EngineMasks{0x03ff03ff, 0}));
  EXPECT_EQ(mask(0x0f0f0f0f0f, strix_halo()), (EngineMasks{0x000003ff, 0x000003ff}));
}

TEST(CuMap, deals_single_units_to_the_xccs_first) {
  const auto xcc = [](const EngineMasks& masks, std::size_t x) {
    const auto begin = masks.begin() + static_cast<std::ptrdiff_t>(4 * x);
    return EngineMasks(begin, begin + 4);
  };
  for (const std::size_t x : {std::size_t{0}, std::size_t{5}}) {
    EXPECT_EQ(xcc(first(6, mi300a()), x), (EngineMasks{1, 0, 0, 0}));
    EXPECT_EQ(xcc(first(24, mi300a()), x), (EngineMasks{1, 1, 1, 1}));
    EXPECT_EQ(xcc(first(114, mi300a()), x), (EngineMasks{0x1f, 0x1f, 0x1f, 0xf}));
    EXPECT_EQ(xcc(first(228, mi300a()), x), (EngineMasks{0x3ff, 0x3ff, 0x1ff, 0x1ff}));
  }
}

TEST(CuMap, refuses_a_geometry_that_does_not_give_its_units) {
  DeviceDescription d = rembrandt();
  d.units_per_array = {5, 7};
  EXPECT_FALSE(place_units(d));
  d.units_per_array = {};
  d.shader_engines = 0;
  EXPECT_FALSE(place_units(d));
}

class Engines : public testing::Test {
 protected:
  SmallDevice d{Level::high, strix_halo()};
  // Microseconds that 400 workgroups of 1 us take with this mask, launch included.
  std::int64_t takes(std::uint64_t bits, std::uint64_t workgroups = 400) {
    const QueueIndex queue = d.queue();
    CuMask chosen;
    chosen.words[0] = bits;
    d.model->set_mask(queue, chosen, d.now());
    const Nanoseconds begin = d.now();
    const auto run = d.model->launch(queue, {workgroups, 1000}, begin);
    d.model->advance(begin + std::chrono::seconds{1});
    const auto times = d.model->collect(*run);
    return times ? std::chrono::round<std::chrono::microseconds>(times->end - begin).count() : -1;
  }
};

TEST_F(Engines, the_one_with_the_fewest_units_decides) {
  EXPECT_EQ(takes(0xff), 1 + 50) << "4 + 4";
  EXPECT_EQ(takes(0x333f), 1 + 100) << "6 + 2";
  EXPECT_EQ(takes(0xf), 1 + 100) << "2 + 2";
}

TEST_F(Engines, one_without_units_gets_no_work) {
  EXPECT_EQ(takes(0x3333), 1 + 50) << "8 + 0";
  EXPECT_EQ(takes(0x3333333333), 1 + 20) << "20 + 0";
  EXPECT_EQ(takes(0xffffffffff), 1 + 10) << "20 + 20";
}

TEST_F(Engines, workgroups_are_not_split) {
  EXPECT_EQ(takes(0xffffffffff, 1), 1 + 1);
  EXPECT_EQ(takes(0xffffffffff, 2), 1 + 1);
}

TEST_F(Engines, work_leaves_one_that_loses_its_units) {
  const QueueIndex queue = d.queue();
  const auto run = d.model->launch(queue, {400, 1000}, d.now());
  d.model->advance(std::chrono::microseconds{1 + 5});
  CuMask one;
  one.words[0] = 0x3333333333;
  d.model->set_mask(queue, one, d.now());
  d.model->advance(std::chrono::seconds{1});
  const auto times = d.model->collect(*run);
  ASSERT_TRUE(times);
  EXPECT_EQ(times->end, std::chrono::microseconds{1 + 5 + 10}) << "half the work on half the units";
}

}  // namespace
}  // namespace apusched::softapu
