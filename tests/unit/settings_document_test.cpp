// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <string>

#include "settings/document.hpp"
#include "settings/reader.hpp"

namespace apusched::settings {
namespace {

TEST(Document, keeps_keys_in_order_with_their_places) {
  const auto document = read_document("b: 1\na:\n  - x\n");
  ASSERT_TRUE(document);
  ASSERT_EQ(document->entries.size(), 2U);
  EXPECT_EQ(document->entries[0].key.text, "b");
  EXPECT_EQ(document->entries[1].key.position, (Position{2, 1}));
  EXPECT_EQ(document->entries[1].value.items.front().position, (Position{3, 5}));
}

TEST(Document, tells_quoted_text_from_plain_text) {
  const auto document = read_document("{a: 1, b: \"1\", c: '1'}");
  ASSERT_TRUE(document);
  EXPECT_FALSE(document->entries[0].value.quoted);
  EXPECT_TRUE(document->entries[1].value.quoted);
  EXPECT_TRUE(document->entries[2].value.quoted);
}

TEST(Document, an_alias_bomb_is_refused_without_being_expanded) {
  std::string bomb = "a0: &a0 x\n";
  for (int i = 1; i < 60; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb +=
        "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + last + ", " + last + "]\n";
  }
  const auto document = read_document(bomb);
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().front().expected, "a plain value");
}

TEST(Document, an_alias_to_itself_is_refused) {
  EXPECT_FALSE(read_document("&a [*a]"));
}

TEST(Document, nesting_is_bounded_however_deep_it_is) {
  EXPECT_TRUE(read_document(std::string(kMaxDepth, '[') + std::string(kMaxDepth, ']')));
  for (const std::size_t depth : {kMaxDepth + 1, std::size_t{400}, std::size_t{500000}}) {
    EXPECT_FALSE(read_document(std::string(depth, '[') + std::string(depth, ']'))) << depth;
    EXPECT_FALSE(read_document(std::string(depth, '['))) << depth;
    EXPECT_FALSE(read_document(std::string(depth, '{'))) << depth;
    std::string dashes;
    for (std::size_t i = 0; i < depth; ++i) dashes += "- ";
    EXPECT_FALSE(read_document(dashes)) << depth;
  }
}

TEST(Document, a_syntax_error_has_its_place) {
  const auto document = read_document("a: 1\nb: [1, 2\n");
  ASSERT_FALSE(document);
  EXPECT_GE(document.error().front().position.line, 2);
}

TEST(Nearest, offers_only_words_that_are_close) {
  const std::vector<std::string> words{"rate_hz", "window_samples"};
  EXPECT_EQ(nearest("rate_khz", words), "rate_hz");
  EXPECT_EQ(nearest("window_sample", words), "window_samples");
  EXPECT_EQ(nearest("colour", words), std::nullopt);
  EXPECT_EQ(nearest("", words), std::nullopt);
  EXPECT_EQ(nearest(std::string(100000, 'r'), words), std::nullopt);
}

TEST(Shown, cuts_long_text_and_hides_control_characters) {
  Value value;
  value.kind = Value::Kind::scalar;
  value.text = "a\x1b[2J\n";
  EXPECT_EQ(shown(value), "\"a?[2J?\"");
  value.text = std::string(1000, 'x');
  EXPECT_LT(shown(value).size(), 60U);
}

}  // namespace
}  // namespace apusched::settings
