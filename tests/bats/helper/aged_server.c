/* To be preloaded: a server that starts says that it did so an hour ago. All else that it does with
   the time it asks of other functions. */
#define _GNU_SOURCE
#include <sys/time.h>
#include <time.h>

time_t time(time_t* result) {
  struct timeval now;
  gettimeofday(&now, NULL);
  now.tv_sec -= 3600;
  if (result != NULL) *result = now.tv_sec;
  return now.tv_sec;
}
