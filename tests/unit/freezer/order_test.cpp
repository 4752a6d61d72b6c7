// SPDX-License-Identifier: MIT
#include "freezer/order.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace apusched::freezer {
namespace {

using core::FrozenShare;

TEST(Order, says_the_same_after_its_way) {
  Buffer buffer{};
  const Order order{7, FrozenShare::of<50>(), "/system.slice/indexer.service"};
  const auto back = decode_order(encode(order, buffer));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, order);
  const auto answer = decode_answer(encode(Answer{7, 16}, buffer));
  ASSERT_TRUE(answer);
  EXPECT_EQ(*answer, (Answer{7, 16}));
}

TEST(Order, cut_short_or_continued_is_none) {
  Buffer buffer{};
  const auto good = encode(Order{1, FrozenShare::of<50>(), "/a"}, buffer);
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(decode_order(good.first(size))) << size;
  EXPECT_FALSE(decode_order(std::span(buffer).first(good.size() + 1)));
}

TEST(Order, of_another_version_or_a_share_that_leaves_nothing_is_refused) {
  Buffer buffer{};
  const auto size = encode(Order{1, FrozenShare::of<100>(), "/a"}, buffer).size();
  EXPECT_FALSE(decode_order(std::span(buffer).first(size)));
  static_cast<void>(encode(Order{1, FrozenShare::of<90>(), "/a"}, buffer));
  EXPECT_TRUE(decode_order(std::span(buffer).first(size)));
  const std::uint16_t version = kVersion + 1;
  std::memcpy(buffer.data() + offsetof(Header, version), &version, sizeof(version));
  EXPECT_FALSE(decode_order(std::span(buffer).first(size)));
}

TEST(Order, reaches_nothing_outside_of_the_tree) {
  for (const auto* path : {"", "/", "a", "//", "/a//b", "/a/", "/..", "/a/../b", "/a/.", "/./a"})
    EXPECT_FALSE(is_group_path(path)) << path;
  EXPECT_FALSE(is_group_path(std::string("/a\0b", 4)));
  EXPECT_FALSE(is_group_path("/" + std::string(kMaxPath, 'a')));
  for (const auto* path : {"/a", "/a/b.service", "/..a", "/a..", "/.a"})
    EXPECT_TRUE(is_group_path(path)) << path;
}

}  // namespace
}  // namespace apusched::freezer
