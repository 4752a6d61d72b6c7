// SPDX-License-Identifier: MIT
#include "platform/ledger_text.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace apusched::platform {
namespace {

using nlohmann::json;
constexpr int kVersion = 1;

/// The names and numbers of nearly all records need no escapes; the library does the others.
void append_string(std::string& line, std::string_view text) {
  const auto plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (std::ranges::all_of(text, plain))
    (line += '"').append(text) += '"';
  else
    line += json(std::string(text)).dump(-1, ' ', true, json::error_handler_t::replace);
}

void append_field(std::string& line, std::string_view name, std::string_view text) {
  line.append(",\"").append(name).append("\":");
  append_string(line, text);
}

void append_key(std::string& line, const core::ResourceKey& key) {
  append_field(line, "kind", core::to_string(key.kind));
  append_field(line, "id", key.id);
}

void append_put(std::string& line, const LedgerPut& put) {
  const auto& entry = put.entry;
  append_key(line, put.key);
  append_field(line, "original", core::to_string(entry.original));
  if (entry.written) append_field(line, "written", core::to_string(*entry.written));
  if (entry.intended) append_field(line, "intended", core::to_string(*entry.intended));
  if (entry.contended) line += ",\"contended\":true";
  if (entry.drop_in) line += ",\"drop_in\":true";
  if (entry.process)
    line += ",\"pid\":" + core::to_string(entry.process->pid) +
            ",\"start\":" + std::to_string(entry.process->start.ticks);
}

std::optional<core::ResourceKey> key_from(const json& object) {
  const auto kind = core::parse_lever_kind(object.value("kind", ""));
  auto id = object.value("id", "");
  if (!kind || id.empty() || id.size() > 512) return std::nullopt;
  return core::ResourceKey{*kind, std::move(id)};
}

std::optional<LedgerLine> put_from(const json& object) {
  const auto key = key_from(object);
  if (!key) return std::nullopt;
  const auto original = core::parse_lever_value(key->kind, object.value("original", ""));
  if (!original) return std::nullopt;
  core::LedgerEntry entry{
      *original, {}, {}, {}, object.value("contended", false), {}, object.value("drop_in", false)};
  if (object.contains("written")) {
    entry.written = core::parse_lever_value(key->kind, object.value("written", ""));
    if (!entry.written) return std::nullopt;
  }
  if (object.contains("intended")) {
    entry.intended = core::parse_lever_value(key->kind, object.value("intended", ""));
    if (!entry.intended) return std::nullopt;
  }
  if (object.contains("pid")) {
    const auto pid = core::Pid::make(object.value("pid", std::int64_t{0}));
    if (!pid) return std::nullopt;
    entry.process = core::ProcessKey{*pid, {object.value("start", std::uint64_t{0})}};
  }
  return LedgerPut{*key, std::move(entry)};
}

}  // namespace

/// Written by hand: through the library's object tree it was a fifth of a registration's time.
std::string format_line(const LedgerLine& line) {
  std::string text = "{\"v\":" + std::to_string(kVersion);
  if (const auto* header = std::get_if<LedgerHeader>(&line)) {
    append_field(text, "boot", header->boot_id);
  } else if (const auto* put = std::get_if<LedgerPut>(&line)) {
    append_put(text, *put);
  } else {
    append_key(text, std::get<LedgerErase>(line).key);
    text += ",\"erase\":true";
  }
  text += "}\n";
  return text;
}

std::optional<LedgerLine> parse_line(std::string_view text) {
  const auto object = json::parse(text, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  try {
    if (object.value("v", 0) != kVersion) return std::nullopt;
    if (object.contains("boot")) return LedgerHeader{object.at("boot").get<std::string>()};
    if (!object.value("erase", false)) return put_from(object);
    if (auto key = key_from(object)) return LedgerErase{std::move(*key)};
  } catch (const json::exception&) {
    // A field of the wrong type: treated like any other malformed line.
  }
  return std::nullopt;
}

}  // namespace apusched::platform
