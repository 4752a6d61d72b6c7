// SPDX-License-Identifier: MIT
// The floor that the daemon's calls are compared with: the least a sdbus-c++ service can do. `Echo`
// is the shortest call there is; `List` answers with the type and size of ListProcesses, made
// beforehand.
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "dbus/sdbus_version.hpp"

namespace {

using Properties = std::map<std::string, sdbus::Variant>;
using Lever = sdbus::Struct<std::string, std::string, std::string, std::string>;

/// What the daemon tells of one process with nice.
std::map<sdbus::ObjectPath, Properties> one_process() {
  const std::map<std::string, Lever> applied{
      {"nice", sdbus::make_struct(std::string("applied"), std::string("2 threads"),
                                  std::string("-10"), std::string(60, 'x'))}};
  return {{sdbus::ObjectPath("/org/apusched1/process/1"),
           {{"Pid", sdbus::Variant(std::uint32_t{1})},
            {"StartTime", sdbus::Variant(std::uint64_t{1})},
            {"Executable", sdbus::Variant(std::string(40, 'x'))},
            {"Unit", sdbus::Variant(std::string())},
            {"User", sdbus::Variant(std::uint32_t{0})},
            {"Class", sdbus::Variant(std::string("critical"))},
            {"Profile", sdbus::Variant(std::string("bench"))},
            {"Source", sdbus::Variant(std::string("dbus:0"))},
            {"Applied", sdbus::Variant(applied)},
            {"Threads", sdbus::Variant(std::uint32_t{2})},
            {"Members", sdbus::Variant(std::uint32_t{1})},
            {"Gpus", sdbus::Variant(std::vector<std::string>())}}}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s BUS-ADDRESS\n", argv[0]);
    return 2;
  }
  const auto connection = sdbus::createSessionBusConnectionWithAddress(argv[1]);
  const auto object = sdbus::createObject(*connection, sdbus::ObjectPath("/org/apusched/Bench"));
  apusched::sdbus_version::export_methods(
      *object, "org.apusched.Bench",
      std::pair("Echo", [](const std::string& text) { return text; }),
      std::pair("List", [list = one_process()] { return list; }));
  connection->requestName(apusched::sdbus_version::ServiceName("org.apusched.Bench"));
  connection->enterEventLoop();
  return 0;
}
