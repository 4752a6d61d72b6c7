// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "report/record.hpp"

namespace apusched::report {
namespace {

using namespace std::chrono_literals;

core::RegistrationId id(std::int64_t number) {
  return *core::RegistrationId::make(number);
}

/// Two targets over a minute of any load, with numbers that have no short decimal form.
std::string recorded() {
  std::ostringstream out;
  Recorder recorder(out);
  core::ControlSettings settings;
  settings.target = 1.0 / 3.0;
  std::map<core::RegistrationId, core::Controller> controllers;
  for (const auto who : {id(1), id(2)}) {
    recorder.began(who, core::Latency::dispatch, settings);
    controllers.emplace(who, core::Controller(settings));
  }
  std::mt19937 random(1);
  for (int i = 0; i < 600; ++i)
    for (auto& [who, controller] : controllers) {
      core::ControlInput input;
      input.now = i * 100ms;
      input.working = random() % 10 != 0;
      if (random() % 10 != 0) input.observation = static_cast<double>(random() % 1000) / 700;
      input.rival = static_cast<double>(random() % 1000) / 1001;
      input.rungs = {{"weight", random() % 20 != 0, "why \"not\"\xff", true, 200ms, 0.1}};
      recorder.stepped(who, core::Latency::dispatch, input, controller.step(input));
    }
  return out.str();
}

TEST(Replay, decides_everything_the_same_to_the_last_bit) {
  std::istringstream record(recorded());
  const auto replayed = replay(record);
  ASSERT_TRUE(replayed) << core::to_sentence(replayed.error());
  EXPECT_EQ(replayed->steps, 1200U);
  EXPECT_EQ(replayed->different, 0U) << replayed->first_difference;
}

TEST(Replay, names_the_line_that_comes_out_differently) {
  auto text = recorded();
  const auto at = text.find("\"state\":\"violating\"");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 19, "\"state\":\"meeting\"  ");
  std::istringstream record(text);
  const auto replayed = replay(record);
  ASSERT_TRUE(replayed);
  EXPECT_EQ(replayed->different, 1U);
  EXPECT_NE(replayed->first_difference.find("line "), std::string::npos);
}

TEST(Replay, of_what_is_no_record_names_the_line) {
  for (const char* text :
       {"nonsense", "{}", R"({"id":1,"input":{}})", R"({"id":7,"settings":{}})"}) {
    std::istringstream record(text);
    const auto replayed = replay(record);
    ASSERT_FALSE(replayed) << text;
    EXPECT_EQ(replayed.error().target, "line 1");
  }
}

TEST(Recorder, says_which_file_it_cannot_write) {
  const auto recorder = Recorder::open("/nonexistent/record");
  ASSERT_FALSE(recorder);
  EXPECT_EQ(recorder.error().target, "/nonexistent/record");
}

}  // namespace
}  // namespace apusched::report
