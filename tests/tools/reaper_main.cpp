// usage: reaper SECONDS COMMAND [ARGUMENT…]
//
// Runs COMMAND for at most SECONDS and kills everything that descends from it when it has ended.
// What still runs then is a failure and named, though COMMAND succeeded; else the exit status is
// COMMAND's.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "reaper.hpp"

int main(int argc, char** argv) {
  const int limit = argc > 2 ? std::atoi(argv[1]) : 0;
  if (limit <= 0) {
    std::fprintf(stderr, "usage: reaper SECONDS COMMAND [ARGUMENT...]\n");
    return 64;
  }
  const auto body = [argv] {
    ::execvp(argv[2], argv + 2);
    std::perror(argv[2]);
    return 127;
  };
  return redlock::testing::run_and_reap(body, std::chrono::seconds(limit),
                                        redlock::testing::Leftovers::failure);
}
