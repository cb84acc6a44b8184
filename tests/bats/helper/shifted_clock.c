/* To be preloaded: the wall clock is off by as many seconds as CLOCK_IS_OFF says. Whatever else
   tells a time does so as ever. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec* now) {
  const int result = (int)syscall(SYS_clock_gettime, clock, now);
  const char* offset = getenv("CLOCK_IS_OFF");
  if (result == 0 && clock == CLOCK_REALTIME && offset != NULL) now->tv_sec += atoi(offset);
  return result;
}
