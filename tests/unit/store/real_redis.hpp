#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <vector>

#include "drive.hpp"
#include "store/redis/connection.hpp"
#include "store/redis/endpoint.hpp"

namespace redlock::testing {

/// A redis-server of the test's own, on a unix socket, empty and in memory only; it ends with the
/// test, however that ends.
class RealRedis {
 public:
  explicit RealRedis(Drive& drive) : drive_(drive) {
    start();
    const auto end = std::chrono::steady_clock::now() + timeout;
    while (!ask({"PING"})) {
      if (std::chrono::steady_clock::now() > end || ::waitpid(pid_, nullptr, WNOHANG) != 0) {
        pid_ = -1;
        throw std::runtime_error("redis-server does not start");
      }
      ::usleep(2000);
    }
  }

  ~RealRedis() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  RealRedis(const RealRedis&) = delete;
  RealRedis& operator=(const RealRedis&) = delete;

  [[nodiscard]] redis::Endpoint endpoint() const {
    redis::Endpoint endpoint;
    endpoint.kind = redis::Endpoint::Kind::unix_socket;
    endpoint.path = directory_.file("s");
    return endpoint;
  }

  /// The reply to a command that the test sends beside the code under test; it must not be an
  /// error.
  Reply operator()(redis::Command command) {
    const std::string name = command.front();
    auto reply = ask(std::move(command));
    if (!reply) throw std::runtime_error(name + ": " + reply.error().text);
    if (reply->type == Reply::Type::error) throw std::runtime_error(name + ": " + reply->text);
    return std::move(*reply);
  }

  /// Stops the process; it keeps its sockets, and the kernel keeps what is sent to them.
  void pause() {
    ::kill(pid_, SIGSTOP);
    int status = 0;
    ::waitpid(pid_, &status, WUNTRACED);
    EXPECT_TRUE(WIFSTOPPED(status));
  }
  void resume() { ::kill(pid_, SIGCONT); }

 private:
  void start() {
    const std::string socket = directory_.file("s");
    const std::string folder = directory_.file("");
    const std::array<const char*, 10> arguments{"redis-server", "--port", "0", "--unixsocket",
                                                socket.c_str(), "--save", "",  "--dir",
                                                folder.c_str(), nullptr};
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int null = ::open("/dev/null", O_RDWR);
    for (const int fd : {0, 1, 2}) ::dup2(null, fd);
    if (::getppid() == parent) ::execvp(arguments[0], const_cast<char* const*>(arguments.data()));
    ::_exit(127);
  }

  Result<Reply, Fault> ask(redis::Command command) {
    if (!connection_ || !connection_->usable()) {
      connection_ = std::make_shared<redis::Connection>(
          drive_.executor(), drive_.clock(),
          redis::make_plain_transport(drive_.executor(), drive_.clock(), endpoint()),
          std::vector<redis::Command>{});
      connection_->start(drive_.soon());
    }
    return drive_.run(
        connection_->request(std::move(command), redis::ReplyLimits{}, drive_.soon()));
  }

  Drive& drive_;
  Directory directory_;
  pid_t pid_ = -1;
  std::shared_ptr<redis::Connection> connection_;
};

}  // namespace redlock::testing
