// SPDX-License-Identifier: MIT
#include "freezer/order.hpp"

#include <algorithm>
#include <cstring>

namespace apusched::freezer {
namespace {

core::Result<Header> decode_header(std::span<const std::byte> bytes) {
  const auto bad = [](const char* why) {
    return core::fail(core::ErrorCode::invalid_input, "read", "freezer record", why);
  };
  Header header;
  if (bytes.size() < sizeof(header)) return bad("too short");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kMagic) return bad("not one");
  if (header.version != kVersion) return bad("of another version");
  if (header.path_size > kMaxPath || bytes.size() != sizeof(header) + header.path_size)
    return bad("of a wrong size");
  return header;
}

}  // namespace

bool is_group_path(std::string_view path) {
  if (path.size() < 2 || path.size() > kMaxPath || path.front() != '/') return false;
  if (path.find('\0') != std::string_view::npos) return false;
  std::size_t begin = 1;
  while (begin <= path.size()) {
    const auto end = std::min(path.find('/', begin), path.size());
    const auto component = path.substr(begin, end - begin);
    if (component.empty() || component == "." || component == "..") return false;
    begin = end + 1;
  }
  return true;
}

std::span<const std::byte> encode(const Order& order, Buffer& buffer) {
  const Header header{
      kMagic,         kVersion, static_cast<std::uint16_t>(order.share.value()),
      order.sequence, 0,        static_cast<std::uint32_t>(std::min(order.path.size(), kMaxPath))};
  std::memcpy(buffer.data(), &header, sizeof(header));
  std::memcpy(buffer.data() + sizeof(header), order.path.data(), header.path_size);
  return std::span(buffer).first(sizeof(header) + header.path_size);
}

std::span<const std::byte> encode(const Answer& answer, Buffer& buffer) {
  const Header header{kMagic, kVersion, 0, answer.sequence, answer.error, 0};
  std::memcpy(buffer.data(), &header, sizeof(header));
  return std::span(buffer).first(sizeof(header));
}

core::Result<Order> decode_order(std::span<const std::byte> bytes) {
  const auto header = decode_header(bytes);
  if (!header) return tl::unexpected(header.error());
  const auto share = core::FrozenShare::make(header->percent);
  if (!share || share->value() > core::kMostFrozenPercent)
    return core::fail(core::ErrorCode::invalid_input, "read", "freezer record",
                      "a share above " + std::to_string(core::kMostFrozenPercent) + " percent");
  std::string path(header->path_size, '\0');
  std::memcpy(path.data(), bytes.data() + sizeof(Header), path.size());
  if (!is_group_path(path))
    return core::fail(core::ErrorCode::invalid_input, "read", "freezer record", "a bad path");
  return Order{header->sequence, *share, std::move(path)};
}

core::Result<Answer> decode_answer(std::span<const std::byte> bytes) {
  const auto header = decode_header(bytes);
  if (!header) return tl::unexpected(header.error());
  return Answer{header->sequence, header->error};
}

}  // namespace apusched::freezer
