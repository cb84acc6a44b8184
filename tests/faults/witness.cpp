// The command under the lock in the fault runs. It shows the kernel that it runs, in a way that
// survives any kill, and does a read-modify-write that only the lock protects.
//
// usage: witness DIRECTORY HISTORY ID KEY exclusive|shared|slots HOLD-MS plain|stubborn|daemon|left
//
// It holds flock(2) on DIRECTORY/KEY.witness (shared ones and slots a shared one; a slot one on
// DIRECTORY/KEY.slot.N, too), through descriptors that its descendants inherit: the next process to
// get the lock knows that every earlier one is dead. An exclusive one reads DIRECTORY/KEY.counter,
// waits for HOLD-MS, and writes the number plus one.
//
// The last word selects its companion: none, a child that ignores TERM (as it does itself), a
// daemon that ignores TERM, or the same child, which it leaves for other processes to end. It ends
// the others itself. None of them has an environment.
//
// HISTORY gets a line when it enters and one when it leaves; times are CLOCK_MONOTONIC, in seconds.
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

double now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  _exit(9);
}

int open_file(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CREAT, 0600);
  if (fd < 0) fail(path.c_str());
  return fd;
}

// Locks it; false if another process has a conflicting lock.
bool lock(const std::string& path, int how) {
  return flock(open_file(path, O_RDWR), how | LOCK_NB) == 0;
}

// A single write, which the kernel appends atomically.
void note(const char* history, const std::string& fields) {
  char begin[64];
  std::snprintf(begin, sizeof begin, "{\"t\": %.6f, ", now());
  const std::string line = begin + fields + "}\n";
  const int fd = open(history, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0 || write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    fail(history);
  }
  close(fd);
}

void ignore_all_that_asks() {
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) std::signal(number, SIG_IGN);
}

// Clears the environment as `env -i` does: a search for a variable in /proc/PID/environ misses it.
void empty_environment() {
  for (char** entry = environ; *entry != nullptr; ++entry)
    std::memset(*entry, 0, std::strlen(*entry));
}

[[noreturn]] void stay() {
  ignore_all_that_asks();
  empty_environment();
  for (;;) pause();
}

pid_t start_child() {
  const pid_t child = fork();
  if (child == 0) stay();
  if (child < 0) fail("fork");
  return child;
}

// A process in a session of its own, whose parent is dead.
pid_t start_daemon() {
  int told[2];
  if (pipe2(told, O_CLOEXEC) < 0) fail("pipe");
  const pid_t middle = fork();
  if (middle < 0) fail("fork");
  if (middle == 0) {
    setsid();
    const pid_t daemon = fork();
    if (daemon == 0) stay();
    if (write(told[1], &daemon, sizeof daemon) < 0) fail("pipe");
    _exit(0);
  }
  pid_t daemon = -1;
  if (read(told[0], &daemon, sizeof daemon) != sizeof daemon || daemon < 0) fail("fork");
  waitpid(middle, nullptr, 0);
  close(told[0]);
  close(told[1]);
  return daemon;
}

// Returns when the process is dead; it need not be a child of this one.
void end(pid_t process) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  kill(process, SIGKILL);
  pollfd dead{fd, POLLIN, 0};
  while (fd >= 0 && poll(&dead, 1, -1) < 0) {
  }
}

long read_counter(int fd) {
  char text[32] = {};
  return pread(fd, text, sizeof text - 1, 0) < 0 ? -1 : std::strtol(text, nullptr, 10);
}

void wait_for(long ms) {
  timespec rest{ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&rest, &rest) < 0) {
  }
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? "null" : value;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) return 64;
  const std::string place = std::string(argv[1]) + "/" + argv[4];
  const char* history = argv[2];
  const std::string id = "\"id\": \"" + std::string(argv[3]) + "\"";
  const std::string mode = argv[5];
  const std::string beside = argv[7];

  const std::string slot = variable("REDLOCK_SLOT");
  bool free = lock(place + ".witness", mode == "exclusive" ? LOCK_EX : LOCK_SH);
  if (mode == "slots") free = lock(place + ".slot." + slot, LOCK_EX) && free;
  note(history, "\"what\": \"enter\", " + id + ", \"fence\": " + variable("REDLOCK_FENCE") +
                    ", \"slot\": " + slot + ", \"pid\": " + std::to_string(getpid()) +
                    ", \"free\": " + (free ? "true" : "false"));

  if (beside == "stubborn") ignore_all_that_asks();
  pid_t companion = -1;
  if (beside == "daemon") companion = start_daemon();
  if (beside == "stubborn" || beside == "left") companion = start_child();

  const int counter = open_file(place + ".counter", O_RDWR | O_CLOEXEC);
  const long before = read_counter(counter);
  wait_for(std::strtol(argv[6], nullptr, 10));
  const long again = read_counter(counter);
  if (mode == "exclusive") {
    const std::string next = std::to_string(before + 1);
    if (pwrite(counter, next.data(), next.size(), 0) < 0) fail("counter");
  }

  if (beside == "stubborn" || beside == "daemon") end(companion);
  note(history, "\"what\": \"leave\", " + id + ", \"read\": " + std::to_string(before) +
                    ", \"again\": " + std::to_string(again));
}
