// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/json.hpp"
#include "ctl_sample_views.hpp"

namespace apusched::ctl {
namespace {

using nlohmann::json;

json parsed(const nlohmann::ordered_json& document) {
  return json::parse(to_text(document, false));
}

std::vector<std::string> keys_of(const json& object) {
  std::vector<std::string> keys;
  for (const auto& item : object.items()) keys.push_back(item.key());
  return keys;
}

// The documented shape: a key that goes missing or changes its name breaks users' scripts.
TEST(Json, status_has_the_documented_keys) {
  const auto status = parsed(json_of(sample_status()));
  using testing::UnorderedElementsAre;
  EXPECT_THAT(keys_of(status), UnorderedElementsAre("schema", "daemon", "gpus", "processes"));
  EXPECT_EQ(status["schema"], 1);
  EXPECT_THAT(
      keys_of(status["daemon"]),
      UnorderedElementsAre("version", "state", "degraded", "dry_run", "process_count", "profiles"));
  EXPECT_THAT(keys_of(status["processes"][0]),
              UnorderedElementsAre("object_path", "pid", "start_time", "executable", "unit", "user",
                                   "class", "profile", "source", "threads", "members", "gpus",
                                   "levers", "agent", "control", "gpu_control"));
  EXPECT_THAT(keys_of(status["gpus"][0]),
              UnorderedElementsAre("object_path", "pci_address", "name", "isa", "compute_units",
                                   "performance_level", "performance_level_owner", "queue_count",
                                   "queue_limit", "oversubscribed", "helper", "probe_mode",
                                   "telemetry", "dispatch_latency"));
}

TEST(Json, values_arrive_as_they_are) {
  const auto status = parsed(json_of(sample_status()));
  const auto& process = status["processes"][0];
  EXPECT_EQ(process["pid"], 4711);
  EXPECT_EQ(process["levers"]["nice"], (json{{"outcome", "applied"},
                                             {"target", "14 threads"},
                                             {"value", "-10"},
                                             {"detail", "acts within llama.service"}}));
  EXPECT_EQ(status["gpus"][0]["dispatch_latency"]["queue"], (json{{"count", 5000},
                                                                  {"lost", 2},
                                                                  {"in_window", 1200},
                                                                  {"p50_ns", 8100},
                                                                  {"p95_ns", 12000},
                                                                  {"p99_ns", 45000},
                                                                  {"max_ns", 2300000}}));
}

TEST(Json, what_is_not_known_is_null) {
  auto gpu = sample_gpu();
  gpu.performance_level = "";
  const auto shown = parsed(json_of(gpu));
  EXPECT_TRUE(shown["performance_level"].is_null());
  EXPECT_TRUE(shown["telemetry"]["temperature_celsius"].is_null());
  EXPECT_EQ(shown["telemetry"]["busy_percent"], 87);
}

TEST(Json, empty_lists_are_lists) {
  EXPECT_EQ(parsed(json_list({})), (json{{"schema", 1}, {"processes", json::array()}}));
  EXPECT_EQ(parsed(json_gpus({})), (json{{"schema", 1}, {"gpus", json::array()}}));
  EXPECT_EQ(parsed(json_probe({})), (json{{"schema", 1}, {"gpus", json::array()}}));
  auto process = sample_process();
  process.levers.clear();
  EXPECT_TRUE(parsed(json_of(process))["levers"].is_object());
}

TEST(Json, bytes_that_are_no_text_do_not_stop_it) {
  auto process = sample_process();
  process.executable = "/tmp/\xff\xfe";
  EXPECT_NO_THROW(static_cast<void>(parsed(json_list({process}))));
}

TEST(Json, the_compact_form_is_one_line) {
  const auto text = to_text(json_of(sample_status()), true);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
}

}  // namespace
}  // namespace apusched::ctl
