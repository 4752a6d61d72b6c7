// SPDX-License-Identifier: MIT
// A process to be registered: as many threads as asked for, all of them asleep until it is killed.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

int main(int argc, char** argv) {
  const int threads = argc == 2 ? std::atoi(argv[1]) : 0;
  if (threads < 1) {
    std::fprintf(stderr, "usage: %s THREADS\n", argv[0]);
    return 2;
  }
  const auto sleep_for_ever = [] {
    for (;;) ::pause();
  };
  for (int i = 1; i < threads; ++i) std::thread(sleep_for_ever).detach();
  std::puts("ready");
  std::fflush(stdout);
  sleep_for_ever();
}
