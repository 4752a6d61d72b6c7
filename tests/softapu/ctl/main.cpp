// SPDX-License-Identifier: MIT
// softapu-ctl: puts faults into the software APU of a session.
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "ctl/faults.h"
#include "ctl/rsmi_mutex.h"

namespace {

using namespace apusched::softapu;

constexpr int kFailed = 1;
constexpr int kUsage = 2;

Complaint hold_rsmi_mutex(FaultControl& control) {
  // Up to version 6.1 the library names it by the card, in 6.4 by the render node.
  RsmiMutex by_card(control.card());
  RsmiMutex by_render_node(control.render_node());
  by_card.lock();
  by_render_node.lock();
  auto complaint = control.set(Fault::rsmi_mutex, true);
  if (!complaint) {
    std::printf("holding /dev/shm/rocm_smi_%s and ..._%s\n", control.card().c_str(),
                control.render_node().c_str());
    std::fflush(stdout);
    control.hold(Fault::rsmi_mutex);
    complaint = control.set(Fault::rsmi_mutex, false);
  }
  by_render_node.unlock();
  by_card.unlock();
  return complaint;
}

Complaint print_list(FaultControl& control) {
  for (const std::string& line : control.list()) std::printf("%s\n", line.c_str());
  return std::nullopt;
}

// Which fault a word means; nothing: none.
std::optional<Fault> fault_named(const std::string& name) {
  for (std::size_t i = 0; i < kFaults; i++)
    if (name == kFaultNames[i]) return Fault{static_cast<std::uint32_t>(i)};
  return std::nullopt;
}

using Words = std::vector<std::string>;

// A command line that is wrong; what() says what and where.
struct BadWord : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::uint32_t number(const Words& words, std::size_t at, std::uint32_t otherwise,
                     std::uint32_t least, std::uint32_t most) {
  if (words.size() <= at) return otherwise;
  std::uint32_t value = 0;
  const char* end = words[at].data() + words[at].size();
  const auto [stop, error] = std::from_chars(words[at].data(), end, value);
  if (error != std::errc{} || stop != end || value < least || value > most)
    throw BadWord(words[at] + ": expected a number from " + std::to_string(least) + " to " +
                  std::to_string(most));
  return value;
}

Complaint clear(FaultControl& control, const Words& words) {
  if (words.empty()) return control.clear();
  const auto fault = fault_named(words[0]);
  if (!fault) throw BadWord(words[0] + ": no such fault");
  return control.set(*fault, false);
}

Complaint reset(FaultControl& control, const Words& words) {
  if (!words.empty() && words[0] != "hold") throw BadWord(words[0] + ": expected hold");
  return control.reset(!words.empty());
}

Complaint stop_queue(FaultControl& control, const Words& words) {
  constexpr std::uint32_t kMost = 0x7fffffff;
  const auto pid = number(words, 0, 0, 1, kMost);
  return control.stop_queue(
      pid, words.size() > 1 ? std::optional(number(words, 1, 0, 0, kMost)) : std::nullopt);
}

struct Command {
  const char* name;
  const char* arguments;
  std::size_t least, most;  // arguments
  const char* about;
  Complaint (*run)(FaultControl&, const Words&);
};

constexpr Command kCommands[] = {
    {"reset", "[hold]", 0, 1, "all clients lose what they have; hold: stay in it until cleared",
     reset},
    {"hang", "", 0, 0, "nothing on the device retires any more",
     [](FaultControl& c, const Words&) { return c.set(Fault::hang, true); }},
    {"stop-queue", "PID [ID]", 1, 2, "one queue of a process, or all, stop retiring", stop_queue},
    {"suspend", "", 0, 0, "EPERM from the driver's files, as while suspended",
     [](FaultControl& c, const Words&) { return c.set(Fault::suspended, true); }},
    {"slow-sysfs", "[MS]", 0, 1, "the driver's files take their time (1000)",
     [](FaultControl& c, const Words& w) { return c.slow_sysfs(number(w, 0, 1000, 1, 60000)); }},
    {"vanish", "FILE", 1, 1, "a file below the PCI device is not there",
     [](FaultControl& c, const Words& w) { return c.vanish(w[0]); }},
    {"level", "LEVEL", 1, 1, "somebody else writes the performance level",
     [](FaultControl& c, const Words& w) { return c.write_level(w[0]); }},
    {"no-memory", "", 0, 0, "allocations fail with ENOMEM",
     [](FaultControl& c, const Words&) { return c.set(Fault::no_memory, true); }},
    {"gone", "", 0, 0, "the device disappears, as after a PCI remove",
     [](FaultControl& c, const Words&) { return c.remove_device(); }},
    {"rsmi-mutex", "", 0, 0, "hold rocm-smi's mutex until cleared or SIGTERM",
     [](FaultControl& c, const Words&) { return hold_rsmi_mutex(c); }},
    {"clear", "[NAME]", 0, 1, "end one fault, or all", clear},
    {"list", "", 0, 0, "print the faults there are",
     [](FaultControl& c, const Words&) { return print_list(c); }},
};

std::string help() {
  std::string text = "Faults:\n";
  for (const Command& command : kCommands) {
    std::string words = std::string(command.name) + " " + command.arguments;
    words.resize(22, ' ');
    text += "  " + words + command.about + "\n";
  }
  return text;
}

const Command& command_of(const Words& words) {
  if (words.empty()) throw BadWord("fault: which one? See --help");
  for (const Command& command : kCommands) {
    if (words[0] != command.name) continue;
    const std::size_t count = words.size() - 1;
    if (count >= command.least && count <= command.most) return command;
    throw BadWord(words[0] + ": expected " + command.name + " " + command.arguments);
  }
  throw BadWord(words[0] + ": no such fault; see --help");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Puts faults into the software APU of a session"};
  std::string session;
  std::size_t gpu = 0;
  Words words;
  app.add_option("--session", session, "directory of a session that is served")->required();
  app.require_subcommand(1);
  auto* fault = app.add_subcommand("fault", "put in, end or list faults");
  fault->add_option("--gpu", gpu, "number of the GPU that has them")->capture_default_str();
  fault->add_option("WORDS", words, "a fault and its arguments");
  fault->footer(help());
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  try {
    const Command& command = command_of(words);
    words.erase(words.begin());
    FaultControl control(session, gpu);
    const Complaint complaint = command.run(control, words);
    if (!complaint) return 0;
    std::fprintf(stderr, "softapu-ctl: %s\n", complaint->c_str());
  } catch (const BadWord& error) {
    std::fprintf(stderr, "softapu-ctl: %s\n", error.what());
    return kUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "softapu-ctl: %s\n", error.what());
  }
  return kFailed;
}
