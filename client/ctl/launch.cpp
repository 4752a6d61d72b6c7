// SPDX-License-Identifier: MIT
#include "ctl/launch.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <thread>

namespace apusched::ctl {
namespace {

std::string between_blanks(std::string_view text) {
  std::string padded = " ";
  padded.append(text).append(" ");
  return padded;
}

bool lists(std::string_view tools, std::string_view tool) {
  return between_blanks(tools).find(between_blanks(tool)) != std::string::npos;
}

}  // namespace

LaunchPlan plan_launch(const Environment& wanted, const Lookup& existing) {
  LaunchPlan plan;
  for (const auto& [name, value] : wanted) {
    const auto there = existing(name);
    if (name == "HSA_CU_MASK" && existing("ROCR_VISIBLE_DEVICES")) {
      plan.notes.emplace_back(
          "HSA_CU_MASK is not set: ROCR_VISIBLE_DEVICES changes which GPU a number means");
    } else if (!there || there->empty()) {
      plan.set[name] = value;
    } else if (name == "HSA_TOOLS_LIB") {
      auto& tools = plan.set[name];
      tools = *there;
      if (!lists(*there, value)) tools.append(" ").append(value);
    } else if (*there != value) {
      auto& note = plan.notes.emplace_back(name);
      note.append("=").append(*there).append(" is kept; the profile would set ").append(value);
    }
  }
  return plan;
}

Failure launch(const std::vector<std::string>& command, const Environment& set) {
  for (const auto& [name, value] : set) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execvp(argv.front(), argv.data());
  const int error = errno;
  return {error == ENOENT ? ExitCode::command_not_found : ExitCode::command_not_started,
          "cannot start " + command.front() + ": " + std::generic_category().message(error)};
}

void pause(std::chrono::milliseconds time) {
  std::this_thread::sleep_for(time);
}

}  // namespace apusched::ctl
