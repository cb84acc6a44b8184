/* The supervised floor: the least that a client with our obligations can do. It has the same two
   guards beside the command, and sends the same bytes: a front process that keeps signals, a
   watchdog timer and the exit status; a holder process of its own process group, forked before any
   socket, that connects, acquires, starts the command behind a gate, would renew it, and releases;
   subreapers, PDEATHSIG, a channel and a shared page between them. It parses no options, decides
   nothing, waits in no queue, and knows one server on a unix socket.

   usage: floor SOCKET ACQUIRE RELEASE COMMAND [ARGUMENT...]
   ACQUIRE and RELEASE are files with the requests, as redlock-cli sends them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct page {
  _Atomic long long deadline;
  _Atomic int running;
};

static void fail(const char* what) {
  perror(what);
  _exit(71);
}

static sigset_t all_signals(void) {
  sigset_t set;
  sigfillset(&set);
  return set;
}

/* Adds a descriptor to epoll; -> the descriptor */
static int watch(int epoll, int fd) {
  struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
  if (fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll");
  return fd;
}

/* Waits until fd is readable; what the others tell is read and dropped. */
static void wait_for(int epoll, int fd) {
  for (;;) {
    struct epoll_event event;
    char dropped[256];
    if (epoll_wait(epoll, &event, 1, -1) != 1) continue;
    if (event.data.fd == fd) return;
    if (read(event.data.fd, dropped, sizeof dropped) < 0) fail("read");
  }
}

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_BOOTTIME, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int timer_in(int seconds) {
  int fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  struct itimerspec when = {.it_value.tv_sec = seconds};
  if (timerfd_settime(fd, 0, &when, NULL) != 0) fail("timer");
  return fd;
}

/* Sends what the file holds, and reads the reply. */
static void ask(int epoll, int server, const char* file) {
  char text[4096];
  int fd = open(file, O_RDONLY | O_CLOEXEC);
  ssize_t length = read(fd, text, sizeof text);
  close(fd);
  if (length <= 0 || write(server, text, length) != length) fail("request");
  wait_for(epoll, server);
  if (read(server, text, sizeof text) <= 0 || text[0] != '*') fail("reply");
}

static int holder(char** words, int channel, struct page* page) {
  sigset_t all = all_signals(), before;
  char byte = 0;
  setpgid(0, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigprocmask(SIG_SETMASK, &all, &before);
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  int children = watch(epoll, signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK));
  watch(epoll, channel);

  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, words[1], sizeof address.sun_path - 1);
  int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(server, (struct sockaddr*)&address, sizeof address) != 0) fail("connect");
  watch(epoll, server);
  ask(epoll, server, words[2]);
  atomic_store(&page->deadline, now() + 30000000000LL);
  watch(epoll, timer_in(10));

  int gate[2];
  pid_t self = getpid();
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, gate) != 0) fail("gate");
  pid_t command = fork();
  if (command == 0) {
    close(gate[0]);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self || setpgid(0, 0) != 0 || read(gate[1], &byte, 1) != 1) _exit(71);
    sigprocmask(SIG_SETMASK, &before, NULL);
    execvp(words[4], words + 4);
    _exit(127);
  }
  close(gate[1]);
  if (write(channel, "?", 1) != 1) fail("channel");
  wait_for(epoll, channel);
  if (read(channel, &byte, 1) != 1 || now() > atomic_load(&page->deadline)) fail("go");
  if (write(gate[0], "!", 1) != 1 || read(gate[0], &byte, 1) != 0) fail("gate");
  atomic_store(&page->running, 1);
  if (write(channel, "s", 1) != 1) fail("channel");

  int status = 0;
  struct signalfd_siginfo info;
  while (waitpid(command, &status, WNOHANG) != command) {
    wait_for(epoll, children);
    while (read(children, &info, sizeof info) > 0) continue;
  }
  while (waitpid(-1, NULL, __WALL | WNOHANG) > 0) continue;
  atomic_store(&page->running, 0);
  ask(epoll, server, words[3]);
  shutdown(server, SHUT_WR);
  wait_for(epoll, server);
  if (write(channel, "e", 1) != 1 || write(channel, &status, sizeof status) != sizeof status)
    fail("channel");
  return 0;
}

int main(int count, char** words) {
  if (count < 5) return 64;
  sigset_t all = all_signals();
  int channel[2];
  struct page* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) != 0)
    fail("start");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_t guard = fork();
  if (guard == 0) {
    close(channel[0]);
    _exit(holder(words, channel[1], page));
  }
  close(channel[1]);
  sigset_t before;
  sigprocmask(SIG_SETMASK, &all, &before);
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  watch(epoll, signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK));
  watch(epoll, channel[0]);
  watch(epoll, timer_in(25));

  int status = 0;
  char word;
  for (;;) {
    wait_for(epoll, channel[0]);
    if (read(channel[0], &word, 1) != 1) return 71;
    if (word == '?' && write(channel[0], "!", 1) != 1) return 71;
    if (word == 'e') break;
  }
  if (read(channel[0], &status, sizeof status) != sizeof status) return 71;
  if (waitpid(guard, NULL, 0) != guard) return 71;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
