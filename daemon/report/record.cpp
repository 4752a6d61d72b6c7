// SPDX-License-Identifier: MIT
#include "report/record.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace apusched::report {
namespace {

using Json = nlohmann::ordered_json;
using core::Moment;

Json to_json(const core::ControlSettings& s) {
  return {{"target", s.target},
          {"relax_after", s.relax_after.count()},
          {"relax_after_max", s.relax_after_max.count()},
          {"retry_after", s.retry_after.count()},
          {"stale_after", s.stale_after.count()},
          {"let_go_after", s.let_go_after.count()},
          {"change_interval", s.change_interval.count()},
          {"check_after", s.check_after.count()},
          {"check_after_max", s.check_after_max.count()},
          {"rival_floor", s.rival_floor},
          {"min_gain", s.min_gain},
          {"compared", s.compared},
          {"min_superiority", s.min_superiority},
          {"sure_gain", s.sure_gain}};
}

core::ControlSettings settings_from(const Json& json) {
  core::ControlSettings s;
  s.target = json.at("target");
  s.relax_after = Moment(json.at("relax_after"));
  s.relax_after_max = Moment(json.at("relax_after_max"));
  s.retry_after = Moment(json.at("retry_after"));
  s.stale_after = Moment(json.at("stale_after"));
  s.let_go_after = Moment(json.at("let_go_after"));
  s.change_interval = Moment(json.at("change_interval"));
  s.check_after = Moment(json.at("check_after"));
  s.check_after_max = Moment(json.at("check_after_max"));
  s.rival_floor = json.at("rival_floor");
  s.min_gain = json.at("min_gain");
  s.compared = json.at("compared");
  s.min_superiority = json.at("min_superiority");
  s.sure_gain = json.at("sure_gain");
  return s;
}

Json to_json(const core::ControlInput& input) {
  Json rungs = Json::array();
  for (const auto& rung : input.rungs)
    rungs.push_back({{"name", rung.name},
                     {"available", rung.available},
                     {"why_not", rung.why_not},
                     {"needs_rival", rung.needs_rival},
                     {"settle", rung.settle.count()},
                     {"being_written", rung.being_written},
                     {"watts", rung.watts}});
  return {{"now", input.now.count()},
          {"working", input.working},
          {"observation", input.observation ? Json(*input.observation) : Json(nullptr)},
          {"target", input.target ? Json(*input.target) : Json(nullptr)},
          {"rival", input.rival},
          {"rungs", std::move(rungs)}};
}

core::ControlInput input_from(const Json& json) {
  core::ControlInput input;
  input.now = Moment(json.at("now"));
  input.working = json.at("working");
  if (const auto& observation = json.at("observation"); !observation.is_null())
    input.observation = observation.get<double>();
  if (const auto& target = json.at("target"); !target.is_null())
    input.target = target.get<double>();
  input.rival = json.at("rival");
  for (const auto& rung : json.at("rungs"))
    input.rungs.push_back({rung.at("name"), rung.at("available"), rung.at("why_not"),
                           rung.at("needs_rival"), Moment(rung.at("settle")), rung.at("watts"),
                           rung.at("being_written")});
  return input;
}

Json to_json(const core::ControlOutput& output) {
  Json events = Json::array();
  for (const auto& event : output.events)
    events.push_back({{"what", core::to_string(event.what)},
                      {"rung", event.rung},
                      {"text", event.text},
                      {"before", event.before},
                      {"after", event.after}});
  return {{"state", core::to_string(output.state)},
          {"engaged", output.engaged},
          {"events", std::move(events)}};
}

/// Of one registration, for one of its latencies.
using Which = std::pair<std::uint32_t, std::string>;

void replay_line(const Json& json, std::map<Which, core::Controller>& controllers,
                 std::uint64_t line, Replay& result) {
  const Which id{json.at("id"), json.at("what")};
  if (const auto began = json.find("settings"); began != json.end()) {
    controllers.insert_or_assign(id, core::Controller(settings_from(*began)));
    return;
  }
  const auto decided = to_json(controllers.at(id).step(input_from(json.at("input"))));
  ++result.steps;
  if (decided == json.at("output")) return;
  ++result.different;
  if (result.first_difference.empty())
    result.first_difference = "line " + std::to_string(line) + ": recorded " +
                              json.at("output").dump() + ", decided " + decided.dump();
}

}  // namespace

core::Result<std::unique_ptr<Recorder>> Recorder::open(const std::string& path) {
  auto file = std::make_unique<std::ofstream>(path, std::ios::trunc);
  if (!*file)
    return core::fail(core::ErrorCode::failed, "write record", path, "it cannot be opened");
  auto recorder = std::make_unique<Recorder>(*file);
  recorder->file_ = std::move(file);
  return recorder;
}

void Recorder::began(core::RegistrationId id, core::Latency what,
                     const core::ControlSettings& settings) {
  *out_ << Json{{"id", id.value()},
                {"what", core::to_string(what)},
                {"settings", to_json(settings)}}
               .dump()
        << '\n';
}

void Recorder::stepped(core::RegistrationId id, core::Latency what, const core::ControlInput& input,
                       const core::ControlOutput& output) {
  // Texts hold what the kernel or systemd said: bytes that are no UTF-8 are replaced.
  *out_ << Json{{"id", id.value()},
                {"what", core::to_string(what)},
                {"input", to_json(input)},
                {"output", to_json(output)}}
               .dump(-1, ' ', false, Json::error_handler_t::replace)
        << '\n';
}

core::Result<Replay> replay(std::istream& record) {
  Replay result;
  std::map<Which, core::Controller> controllers;
  std::string text;
  for (std::uint64_t line = 1; std::getline(record, text); ++line) try {
      replay_line(Json::parse(text), controllers, line, result);
    } catch (const std::exception& error) {
      return core::fail(core::ErrorCode::invalid_input, "replay", "line " + std::to_string(line),
                        error.what());
    }
  return result;
}

}  // namespace apusched::report
