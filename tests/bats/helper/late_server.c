/* To be preloaded: whatever arrives at a socket is noticed 20 ms later, so that of several servers
   this one answers last. */
#define _GNU_SOURCE
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t read(int fd, void* buffer, size_t size) {
  const ssize_t result = syscall(SYS_read, fd, buffer, size);
  struct stat status;
  if (result > 0 && fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode)) usleep(20000);
  return result;
}
