// SPDX-License-Identifier: MIT
// The floor that the daemon's calls are compared with: the least a sdbus-c++ service can do.
#include <sdbus-c++/sdbus-c++.h>

#include <cstdio>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s BUS-ADDRESS\n", argv[0]);
    return 2;
  }
  const auto connection = sdbus::createSessionBusConnectionWithAddress(argv[1]);
  const auto object = sdbus::createObject(*connection, "/org/apusched/Bench");
  object->registerMethod("Echo")
      .onInterface("org.apusched.Bench")
      .implementedAs([](const std::string& text) { return text; });
  object->finishRegistration();
  connection->requestName("org.apusched.Bench");
  connection->enterEventLoop();
  return 0;
}
