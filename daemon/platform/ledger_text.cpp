// SPDX-License-Identifier: MIT
#include "platform/ledger_text.hpp"

#include <nlohmann/json.hpp>

namespace apusched::platform {
namespace {

using nlohmann::json;
constexpr int kVersion = 1;

json to_json(const core::ResourceKey& key) {
  return {{"kind", std::string(core::to_string(key.kind))}, {"id", key.id}};
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

std::string format_line(const LedgerLine& line) {
  json object{{"v", kVersion}};
  if (const auto* header = std::get_if<LedgerHeader>(&line)) {
    object["boot"] = header->boot_id;
  } else if (const auto* put = std::get_if<LedgerPut>(&line)) {
    object.update(to_json(put->key));
    object["original"] = core::to_string(put->entry.original);
    if (put->entry.written) object["written"] = core::to_string(*put->entry.written);
    if (put->entry.intended) object["intended"] = core::to_string(*put->entry.intended);
    if (put->entry.contended) object["contended"] = true;
    if (put->entry.drop_in) object["drop_in"] = true;
    if (put->entry.process) {
      object["pid"] = put->entry.process->pid.value();
      object["start"] = put->entry.process->start.ticks;
    }
  } else {
    object.update(to_json(std::get<LedgerErase>(line).key));
    object["erase"] = true;
  }
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
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
