// Linked into the programs of a coverage build alone (tests/coverage.sh): the counters are written
// before a process ends in a way that libgcov does not see, and not where it would fail. It sees
// exit, fork and exec. A process that another one kills takes its counters with it.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

extern "C" {
#include <gcov.h>

[[noreturn]] void __real__exit(int code);
int __real_raise(int signal);

/// Whether this process may write into COUNTERS, the directory of the build. libgcov would complain
/// on stderr, and a limit for the size of files, which a test sets, would end us.
static bool may_write() {
  rlimit limit{};
  return ::access(COUNTERS, W_OK) == 0 && ::getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
         limit.rlim_cur == RLIM_INFINITY;
}

[[noreturn]] void __wrap__exit(int code) {
  if (may_write()) __gcov_dump();
  __real__exit(code);
}

int __wrap_raise(int signal) {
  if (may_write()) {
    __gcov_dump();
    __gcov_reset();  // the process may live on, and count
  }
  return __real_raise(signal);
}

/// libgcov writes when exit() has called all handlers; this one, the first, is called last.
__attribute__((constructor)) static void leave_without_counters() {
  ::on_exit(
      [](int code, void*) {
        if (may_write()) return;
        std::fflush(nullptr);
        __real__exit(code);
      },
      nullptr);
}
}
