// A command that loads its machine, for tests of what happens to it when its lease cannot be
// renewed:
//
//   load-tree KIND COUNT [--sessions] [--polite]
//
//   busy COUNT    processes that loop
//   idle COUNT    processes that sleep
//   fat COUNT     one process that has written to COUNT MiB of memory
//   forks COUNT   processes that fork all the time
//
// All ignore TERM, HUP and INT, but with --polite. They share the process group of the first, or
// with --sessions have sessions of their own. `ready` on stdout says that all of them are up. None
// ends by itself.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

[[noreturn]] void loop() {
  volatile unsigned long round = 0;
  for (;;) round = round + 1;
}

[[noreturn]] void idle() {
  for (;;) ::pause();
}

[[noreturn]] void fork_for_ever() {
  ::signal(SIGCHLD, SIG_IGN);
  for (;;) {
    if (::fork() == 0) {
      ::usleep(10'000);
      ::_exit(0);
    }
    ::usleep(1'000);
  }
}

[[noreturn]] void grow(long mebibytes) {
  const auto size = static_cast<std::size_t>(mebibytes) << 20;
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) ::_exit(1);
  std::puts("ready");
  std::fflush(stdout);
  idle();
}

int usage() {
  std::fputs("usage: load-tree busy|idle|fat|forks COUNT [--sessions] [--polite]\n", stderr);
  return 64;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return usage();
  const std::string_view kind = argv[1];
  const long count = std::atol(argv[2]);
  bool sessions = false;
  bool polite = false;
  for (int i = 3; i < argc; ++i) {
    sessions |= std::string_view(argv[i]) == "--sessions";
    polite |= std::string_view(argv[i]) == "--polite";
  }
  if (count < 1) return usage();
  if (!polite) {
    for (const int signal : {SIGTERM, SIGHUP, SIGINT}) ::signal(signal, SIG_IGN);
  }
  if (kind == "fat") grow(count);

  const auto live = kind == "busy"    ? loop
                    : kind == "idle"  ? idle
                    : kind == "forks" ? fork_for_ever
                                      : nullptr;
  if (live == nullptr) return usage();
  // None begins before all are there: else the last of thousands would take for ever.
  std::array<int, 2> start{};
  if (::pipe2(start.data(), O_CLOEXEC) != 0) return 1;
  for (long i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    if (child < 0) {
      std::perror("load-tree: fork");
      return 1;
    }
    if (child > 0) continue;
    if (sessions) ::setsid();
    ::close(start[1]);
    char byte = 0;
    [[maybe_unused]] const auto got = ::read(start[0], &byte, 1);
    live();
  }
  ::close(start[1]);
  std::puts("ready");
  std::fflush(stdout);
  idle();
}
