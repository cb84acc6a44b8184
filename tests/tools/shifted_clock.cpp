// shifted-clock SECONDS|FILE COMMAND…: the kernel tells COMMAND, and the processes that it starts,
// a wall clock that is off by so many seconds, or by the nanoseconds that FILE has at that moment
// (eight bytes in native order). It becomes COMMAND, which keeps its pid and its parent. Other
// clocks are right, and so is what a program reads without a system call (the vDSO), as most do.
//
// A process of its own answers the calls; it ends with the last process whose clock it shifts.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

namespace {

constexpr std::int64_t second = 1'000'000'000;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::_Exit(125);
}

/// Where the offset in nanoseconds is.
const volatile std::int64_t* find_offset(const char* word) {
  static std::int64_t fixed = 0;
  if (std::strchr(word, '/') == nullptr) {
    fixed = std::atoll(word) * second;
    return &fixed;
  }
  const int fd = ::open(word, O_RDONLY | O_CLOEXEC);
  void* page = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) fail(word);
  return static_cast<const std::int64_t*>(page);
}

/// From now on, the kernel asks the listener about each reading of the wall clock.
int install_filter() {
  const auto field = [](std::size_t offset) {
    return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
  };
  std::array program{
      field(offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 3),
      field(offsetof(seccomp_data, args)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CLOCK_REALTIME, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("no_new_privs");
  const long listener =
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
  if (listener < 0) fail("seccomp");
  return static_cast<int>(listener);
}

timespec shifted_time(std::int64_t offset) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t shifted = now.tv_sec * second + now.tv_nsec + offset;
  return {shifted / second, shifted % second};
}

void answer_calls(int listener, const volatile std::int64_t& offset) {
  for (pollfd asked{listener, POLLIN, 0};;) {
    if (::poll(&asked, 1, -1) < 0 && errno != EINTR) fail("poll");
    if ((asked.revents & POLLHUP) != 0) return;
    seccomp_notif call{};
    if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) continue;
    timespec now = shifted_time(offset);
    const iovec from{&now, sizeof now};
    const iovec to{reinterpret_cast<void*>(call.data.args[1]), sizeof now};
    const bool written =
        ::process_vm_writev(static_cast<pid_t>(call.pid), &from, 1, &to, 1, 0) == sizeof now;
    seccomp_notif_resp reply{call.id, 0, written ? 0 : -EPERM, 0};
    (void)::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &reply);
  }
}

/// Takes the listener of the process, whose number comes over the socket, and answers until nobody
/// asks any more.
[[noreturn]] void serve(pid_t process, int socket, const volatile std::int64_t& offset,
                        std::span<char> environment) {
  ::setsid();
  int number = -1;
  if (::read(socket, &number, sizeof number) != sizeof number) std::_Exit(125);
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  const int listener = static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd, number, 0));
  if (listener < 0) fail("pidfd_getfd");
  // Whoever looks for COMMAND by its environment or descriptors must not find us.
  ::clearenv();
  std::memset(environment.data(), 0, environment.size());
  for (int fd = 0; fd < 1024; ++fd) {  // the socket last: the process waits for its end
    if (fd != listener && fd != socket) ::close(fd);
  }
  ::close(socket);
  answer_calls(listener, offset);
  std::_Exit(0);
}

}  // namespace

int main(int count, char** words, char** variables) {
  if (count < 3) return 125;
  const volatile std::int64_t* const offset = find_offset(words[1]);
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) fail("socketpair");
  const pid_t self = ::getpid();
  std::span<char> environment;
  for (char** one = variables; *one != nullptr; ++one)
    environment = {*variables, *one + std::strlen(*one)};
  const pid_t child = ::fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    ::close(sockets[0]);
    // Not a child of COMMAND, which might wait for it.
    if (::fork() == 0) serve(self, sockets[1], *offset, environment);
    std::_Exit(0);
  }
  ::close(sockets[1]);
  ::waitpid(child, nullptr, 0);
  const int listener = install_filter();
  char end = 0;
  if (::write(sockets[0], &listener, sizeof listener) < 0 || ::read(sockets[0], &end, 1) != 0)
    fail("no answers");
  ::execvp(words[2], words + 2);
  fail(words[2]);
}
