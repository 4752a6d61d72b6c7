// SPDX-License-Identifier: MIT
#include <exception>

#include "settings/document.hpp"
#include "settings/reader.hpp"
#include "settings/settings.hpp"

namespace apusched::settings {
namespace {

void check_floor_of(const core::Profile& profile, std::string_view lever, core::Nice asked,
                    const core::Config& config, const Value& root, ErrorList& errors) {
  const core::Nice floor = config.limits.nice_floor;
  if (asked >= floor) return;
  const std::string key = "profiles." + profile.name + "." + std::string(lever);
  const Value* given = find(find(find(&root, "profiles"), profile.name), lever);
  if (given != nullptr) {
    errors.add(given->position, key, "at least limits.nice_floor, " + to_string(floor),
               shown(*given));
    return;
  }
  // a built-in profile that the file does not mention: the floor is what the file changed
  const Value* changed = find(find(&root, "limits"), "nice_floor");
  errors.add(changed == nullptr ? root.position : changed->position, "limits.nice_floor",
             "at most " + to_string(asked) + ", which " + key + " asks for (set that too)",
             "\"" + to_string(floor) + "\"");
}

/// Rules between settings that are each in range.
void check_together(const core::Config& config, const Value& root, ErrorList& errors) {
  for (const auto& [name, profile] : config.profiles) {
    if (profile.nice) check_floor_of(profile, "nice", *profile.nice, config, root, errors);
    if (profile.autogroup_nice)
      check_floor_of(profile, "autogroup_nice", *profile.autogroup_nice, config, root, errors);
  }
  const auto& probe = config.probe;
  if (probe.idle_burst_interval_max >= probe.idle_burst_interval) return;
  const Value* section = find(&root, "probe");
  const Value* longest = find(section, "idle_burst_interval_max_ms");
  const Value* first = find(section, "idle_burst_interval_ms");
  const Value* at = longest != nullptr ? longest : first;
  errors.add(
      at == nullptr ? root.position : at->position, "probe.idle_burst_interval_max_ms",
      "at least probe.idle_burst_interval_ms, " + std::to_string(probe.idle_burst_interval.count()),
      "\"" + std::to_string(probe.idle_burst_interval_max.count()) + "\"");
}

Parsed parse_checked(std::string_view text, ErrorList& errors) {
  core::Config config = core::default_config();
  if (text.size() > kMaxFileBytes) {
    errors.add({}, "file", "1 MiB at most", std::to_string(text.size()) + " bytes");
    return tl::unexpected(errors.take());
  }
  const auto document = read_document(text);
  if (!document) {
    for (const auto& problem : document.error())
      errors.add(problem.position, "syntax", problem.expected, problem.got);
    return tl::unexpected(errors.take());
  }
  if (document->kind == Value::Kind::map) {
    MapReader reader(*document, "", errors);
    describe(reader, config);
    reader.finish();
    check_together(config, *document, errors);
  } else if (document->kind != Value::Kind::null) {
    errors.add(document->position, "top level", "sections (limits, probe, gpu, access, profiles)",
               shown(*document));
  }
  if (!errors.empty()) return tl::unexpected(errors.take());
  return config;
}

}  // namespace

std::string to_string(const SettingsError& error) {
  return error.file + ":" + std::to_string(error.line) + ":" + std::to_string(error.column) + ": " +
         error.key + ": expected " + error.expected + ", got " + error.got;
}

Parsed parse(std::string_view text, std::string file_name) {
  ErrorList errors(std::move(file_name));
  try {
    return parse_checked(text, errors);
  } catch (const std::exception& error) {
    errors.add({}, "file", "a readable configuration", error.what());
    return tl::unexpected(errors.take());
  }
}

}  // namespace apusched::settings
