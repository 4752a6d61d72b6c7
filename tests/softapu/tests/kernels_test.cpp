// SPDX-License-Identifier: MIT
#include "queue/kernels.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <utility>

#include "tests/fixtures.h"

namespace apusched::softapu {
namespace {

// A kernel descriptor with code at `entry`, in a page of its own.
struct alignas(4096) Object {
  std::array<std::uint32_t, 2048> words{};
  explicit Object(std::int64_t entry) { std::memcpy(&words[4], &entry, sizeof entry); }
};

DispatchPacket packet_for(const Object& object, std::uint32_t workgroups) {
  DispatchPacket packet{};
  packet.setup = 1;
  packet.workgroup_size_x = 64;
  packet.grid_size_x = 64 * workgroups;
  packet.kernel_object = reinterpret_cast<std::uint64_t>(&object);
  return packet;
}

TEST(Kernels, take_cost_and_effect_from_the_hint) {
  const DeviceDescription device = small_device();
  auto object = std::make_unique<Object>(4096);
  object->words[1024] = 0xbf810000;
  object->words[1025] = kHintMagic;
  object->words[1026] = 1;
  object->words[1027] = 1234;
  const KernelWork work = KernelTable(device).resolve(packet_for(*object, 3));
  EXPECT_EQ(work.effect, KernelEffect::fill32);
  EXPECT_EQ(work.cost.workgroups, 3U);
  EXPECT_EQ(work.cost.ns_per_workgroup, 1234);
}

double cost_of_a_timed_kernel_with(void* arguments) {
  const DeviceDescription device = small_device();
  auto object = std::make_unique<Object>(4096);
  object->words[1025] = kHintMagic;
  object->words[1026] = 2;
  object->words[1027] = 1000;
  DispatchPacket packet = packet_for(*object, 3);
  packet.kernarg_address = arguments;
  const KernelWork work = KernelTable(device).resolve(packet);
  EXPECT_EQ(work.effect, KernelEffect::none);
  return work.cost.ns_per_workgroup;
}

TEST(Kernels, that_are_timed_take_their_cost_from_the_arguments) {
  std::uint64_t ns = 123456789;
  EXPECT_EQ(cost_of_a_timed_kernel_with(&ns), 123456789);
  ns = 0;
  EXPECT_EQ(cost_of_a_timed_kernel_with(&ns), 0);
}

TEST(Kernels, that_are_timed_fall_back_on_the_hint_for_arguments_that_are_none) {
  std::uint64_t absurd = kMostTimedNs + 1;
  EXPECT_EQ(cost_of_a_timed_kernel_with(&absurd), 1000);
  EXPECT_EQ(cost_of_a_timed_kernel_with(nullptr), 1000);
  void* unmapped = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(cost_of_a_timed_kernel_with(unmapped), 1000);
  munmap(unmapped, 4096);
}

TEST(Kernels, cost_the_models_constant_without_a_hint) {
  const DeviceDescription device = small_device();
  const auto object = std::make_unique<Object>(4096);
  const KernelWork work = KernelTable(device).resolve(packet_for(*object, 1));
  EXPECT_EQ(work.effect, KernelEffect::none);
  EXPECT_EQ(work.cost.ns_per_workgroup, 10);
}

TEST(Kernels, are_not_read_past_the_end_of_their_page) {
  const DeviceDescription device = small_device();
  auto object = std::make_unique<Object>(4092);
  object->words[1024] = kHintMagic;  // on the next page
  EXPECT_EQ(KernelTable(device).resolve(packet_for(*object, 1)).cost.ns_per_workgroup, 10);
}

TEST(Kernels, of_the_runtime_that_are_unknown_are_an_error) {
  const DeviceDescription device = small_device();
  const auto object = std::make_unique<Object>(256);
  EXPECT_EQ(KernelTable(device).resolve(packet_for(*object, 1)).effect, KernelEffect::unknown_blit);
}

// The first words of ROCr 6.1.2's copies and fill, of GFX11, GFX10 and GFX9.
TEST(Kernels, of_the_runtime_are_known_by_the_arguments_that_they_load) {
  const DeviceDescription device = small_device();
  std::array<std::uint64_t, 11> arguments{};
  const auto effect_of = [&](std::initializer_list<std::uint32_t> code) {
    const auto object = std::make_unique<Object>(256);
    std::copy(code.begin(), code.end(), object->words.begin() + 64);
    DispatchPacket packet = packet_for(*object, 1);
    packet.kernarg_address = arguments.data();
    return KernelTable(device).resolve(packet).effect;
  };
  EXPECT_EQ(effect_of({0xf4080100, 0xf8000000, 0xf4080200, 0xf8000010, 0xf4080300, 0xf8000020,
                       0xf4080400, 0xf8000030, 0xf4080500, 0xf8000040, 0xf4000600, 0xf8000050,
                       0xbf89fc07, 0x84028602}),
            KernelEffect::copy_aligned);
  EXPECT_EQ(effect_of({0xf4080100, 0xfa000000, 0xf4080200, 0xfa000010, 0xf4080300, 0xfa000020,
                       0xf4000400, 0xfa000030, 0xbf8cc07f, 0x8f028602}),
            KernelEffect::copy_misaligned);
  EXPECT_EQ(effect_of({0xc00a0100, 0x00000000, 0xc00a0200, 0x00000010, 0xbf8c007f, 0x8e028602}),
            KernelEffect::fill);
  EXPECT_EQ(effect_of({0xc00a0100, 0x00000000, 0xbf8c007f, 0x8e028602}),
            KernelEffect::unknown_blit);
}

TEST(Kernels, fill_their_grid) {
  const DeviceDescription device = small_device();
  std::array<std::uint32_t, 65> out{};
  struct {
    std::uint32_t* out;
    std::uint32_t value;
  } arguments{out.data(), 7};
  const auto object = std::make_unique<Object>(4096);
  DispatchPacket packet = packet_for(*object, 1);
  packet.kernarg_address = &arguments;
  KernelTable(device).perform({{}, KernelEffect::fill32}, packet);
  EXPECT_EQ(out[0], 7U);
  EXPECT_EQ(out[63], 7U);
  EXPECT_EQ(out[64], 0U);
}

TEST(Kernels, have_as_many_workgroups_as_dimensions_say) {
  DispatchPacket packet{};
  packet.workgroup_size_x = 64;
  packet.workgroup_size_y = 2;
  packet.workgroup_size_z = 1;
  packet.grid_size_x = 65;
  packet.grid_size_y = 4;
  packet.grid_size_z = 3;
  for (const auto& [dimensions, expected] : {std::pair{0, 0}, {1, 2}, {2, 4}, {3, 12}}) {
    packet.setup = static_cast<std::uint16_t>(dimensions);
    EXPECT_EQ(workgroup_count(packet), static_cast<std::uint64_t>(expected));
  }
  packet.workgroup_size_x = 0;
  EXPECT_EQ(workgroup_count(packet), 0U);
}

}  // namespace
}  // namespace apusched::softapu
