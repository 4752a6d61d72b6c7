// SPDX-License-Identifier: MIT
#include "settings/document.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <exception>
#include <sstream>

namespace apusched::settings {
namespace {

Position position_of(const YAML::Mark& mark) {
  // yaml-cpp counts from 0 and marks a missing position with -1
  return mark.is_null() ? Position{} : Position{mark.line + 1, mark.column + 1};
}

/// Builds Values from yaml-cpp's events. Below kMaxDepth nothing is kept.
class Builder final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    ++documents_;
    if (documents_ > 1) report(mark, "one document", "a second one");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    put(leaf(Value::Kind::null, mark, ""));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    report(mark, "a plain value", "an alias (*); write the value out");
    put(leaf(Value::Kind::null, mark, ""));
  }
  void OnAnchor(const YAML::Mark& mark, const std::string& /*name*/) override {
    report(mark, "a plain value", "an anchor (&); write the value out where it is used");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                const std::string& text) override {
    check_tag(mark, tag);
    Value value = leaf(Value::Kind::scalar, mark, text);
    value.quoted = tag == "!";
    if (!value.quoted && (text == "~" || text == "null")) value.kind = Value::Kind::null;
    put(std::move(value));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {
    open(Value::Kind::sequence, mark, tag);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {
    open(Value::Kind::map, mark, tag);
  }
  void OnMapEnd() override { close(); }

  void report(const YAML::Mark& mark, std::string expected, std::string got) {
    problems_.push_back({position_of(mark), std::move(expected), std::move(got)});
  }
  [[nodiscard]] bool in_second_document() const { return documents_ > 1; }
  [[nodiscard]] tl::expected<Value, std::vector<Problem>> take() {
    if (!problems_.empty()) return tl::unexpected(std::move(problems_));
    return std::move(root_);
  }

 private:
  struct Open {
    Value value;
    bool has_key = false;
    Value key;
  };

  static Value leaf(Value::Kind kind, const YAML::Mark& mark, const std::string& text) {
    Value value;
    value.kind = kind;
    value.text = text;
    value.position = position_of(mark);
    return value;
  }
  void check_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    report(mark, "a plain value", "a tag (" + tag + ")");
  }
  void open(Value::Kind kind, const YAML::Mark& mark, const std::string& tag) {
    check_tag(mark, tag);
    ++depth_;
    if (depth_ > kMaxDepth) {
      if (depth_ == kMaxDepth + 1) report(mark, "nesting of 16 levels at most", "a deeper one");
      return;
    }
    open_.push_back({leaf(kind, mark, ""), false, {}});
  }
  void close() {
    if (depth_-- > kMaxDepth) return;
    Value done = std::move(open_.back().value);
    open_.pop_back();
    put(std::move(done));
  }
  void put(Value value) {
    if (depth_ > kMaxDepth) return;
    if (open_.empty()) {
      if (documents_ <= 1) root_ = std::move(value);
      return;
    }
    Open& parent = open_.back();
    if (parent.value.kind == Value::Kind::sequence) {
      parent.value.items.push_back(std::move(value));
    } else if (!parent.has_key) {
      parent.key = std::move(value);
      parent.has_key = true;
    } else {
      parent.value.entries.push_back({std::move(parent.key), std::move(value)});
      parent.has_key = false;
    }
  }

  int documents_ = 0;
  std::size_t depth_ = 0;
  Value root_;
  std::vector<Open> open_;
  std::vector<Problem> problems_;
};

}  // namespace

tl::expected<Value, std::vector<Problem>> read_document(std::string_view text) {
  // a NUL or another control character would let an error message hide what the file holds
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x20U || byte == '\n' || byte == '\r' || byte == '\t') continue;
    int line = 1;
    int column = 1;
    for (const char c : text.substr(0, at)) {
      column = c == '\n' ? 1 : column + 1;
      line += c == '\n' ? 1 : 0;
    }
    return tl::unexpected(std::vector<Problem>{{{line, column}, "text", "a control character"}});
  }
  Builder builder;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (!builder.in_second_document() && parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    builder.report(error.mark, "YAML", error.msg);
  } catch (const std::exception& error) {
    builder.report(YAML::Mark::null_mark(), "YAML", error.what());
  }
  return builder.take();
}

}  // namespace apusched::settings
