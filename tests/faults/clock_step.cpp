// To be preloaded: shifts the wall clock by the number of nanoseconds that the file named by
// CLOCK_STEP_FILE has at that moment (eight bytes in native order). Other clocks are unchanged.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

namespace {

long offset() {
  static volatile const long* const place = [] {
    const char* path = std::getenv("CLOCK_STEP_FILE");
    const int fd = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    void* page = fd < 0 ? MAP_FAILED : mmap(nullptr, sizeof(long), PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    return page == MAP_FAILED ? nullptr : static_cast<const long*>(page);
  }();
  return place == nullptr ? 0 : *place;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, now));
  if (result == 0 && clock == CLOCK_REALTIME) {
    const long ns = now->tv_nsec + offset() % 1000000000;
    now->tv_sec += offset() / 1000000000 + (ns >= 1000000000 ? 1 : ns < 0 ? -1 : 0);
    now->tv_nsec = (ns + 1000000000) % 1000000000;
  }
  return result;
}

extern "C" int gettimeofday(timeval* now, void*) noexcept {
  timespec precise{};
  const int result = clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return result;
}
