#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "proc/process_stat.hpp"
#include "support/unique_fd.hpp"
#include "tools/reaper.hpp"

namespace redlock::testing {

constexpr int kSkipped = 77;
constexpr unsigned kHangSeconds = 60;  // generous: it only ends a test that hangs
constexpr std::chrono::seconds kHangLimit{kHangSeconds};
constexpr auto kPatience = std::chrono::seconds(30);

/// Waits for a child that must exist; returns its wait status.
inline int status_of(pid_t child) {
  int status = 0;
  pid_t got = 0;
  do {
    got = ::waitpid(child, &status, 0);
  } while (got < 0 && errno == EINTR);
  EXPECT_EQ(got, child);
  return status;
}

/// Forks; the child runs `body` and ends with what it returns.
template <class Body>
pid_t forked(Body body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::alarm(kHangSeconds);
  const int code = body();
  std::fflush(nullptr);
  ::_exit(code);
}

/// Runs `body` in a process of its own, whose state it may change and which it may leave children
/// in. However it ends, all its descendants are dead when this returns. Its failed expectations
/// fail the test.
inline void in_child(const std::function<void()>& body) {
  const auto judged = [&body] {
    body();
    if (::testing::Test::HasFailure()) return 1;
    return ::testing::Test::IsSkipped() ? kSkipped : 0;
  };
  std::fflush(nullptr);
  const pid_t reaper = ::fork();
  if (reaper == 0) ::_exit(run_and_reap(judged, kHangLimit, Leftovers::expected));
  const int status = status_of(reaper);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kSkipped) GTEST_SKIP() << "see above";
  EXPECT_EQ(WEXITSTATUS(status), 0)
      << "see the failures above; 124: it took too long, 128 + n: it died of signal n";
}

/// Polls until `done()` is true; returns false on timeout.
template <class Done>
bool eventually(Done done) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::usleep(1000);
  }
  return true;
}

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }

  /// Reads `count` bytes, or fewer if the last writer closes the pipe before.
  std::string read(std::size_t count = std::string::npos) {
    std::string text;
    char byte = 0;
    while (text.size() < count) {
      const ssize_t got = ::read(read_end.get(), &byte, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      text += byte;
    }
    return text;
  }

  std::string read_line() {
    std::string line;
    for (std::string byte = read(1); !byte.empty() && byte != "\n"; byte = read(1)) line += byte;
    return line;
  }

  UniqueFd read_end;
  UniqueFd write_end;
};

/// While it lives, descriptor 1 is the pipe.
class StdoutTo {
 public:
  explicit StdoutTo(const Pipe& pipe) : saved_(::fcntl(1, F_DUPFD_CLOEXEC, 3)) {
    std::fflush(nullptr);
    ::dup2(pipe.write_end.get(), 1);
  }
  ~StdoutTo() { ::dup2(saved_.get(), 1); }
  StdoutTo(const StdoutTo&) = delete;
  StdoutTo& operator=(const StdoutTo&) = delete;

 private:
  UniqueFd saved_;
};

/// A directory that is removed at the end of the test.
class Directory {
 public:
  Directory() {
    std::string name = (std::filesystem::temp_directory_path() / "redlock-test-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

  /// Writes a file; returns its path.
  [[nodiscard]] std::string file(const std::string& name, const std::string& content,
                                 mode_t mode) const {
    const std::string path = path_ + "/" + name;
    std::ofstream(path) << content;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

 private:
  std::string path_;
};

/// A shell script whose processes each write a line when they are up; the pipe ends when all of
/// them are dead.
class Running {
 public:
  Running(const std::string& script, int lines) {
    {
      const StdoutTo redirected(output_);
      pid_ = forked([&script] {
        ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
        return 127;
      });
    }
    output_.write_end.reset();
    for (int line = 0; line < lines; ++line) lines_.push_back(output_.read_line());
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const std::string& line(std::size_t line) const { return lines_.at(line); }
  [[nodiscard]] pid_t pid_in_queue(std::size_t line) const { return std::stoi(lines_.at(line)); }

  std::string next_line() { return output_.read_line(); }

  /// Blocks until no process has the pipe open.
  std::string rest() { return output_.read(); }

 private:
  Pipe output_;
  pid_t pid_ = -1;
  std::vector<std::string> lines_;
};

/// R, S, D, T, Z, …; `?` when there is no such process.
inline char state_of(pid_t pid) {
  const std::string text =
      proc::read_proc_file("/proc/" + std::to_string(pid) + "/stat").value_or("");
  const auto name_end = text.rfind(')');
  return name_end == std::string::npos ? '?' : text.at(name_end + 2);
}

/// If we are root, changes to an ordinary user, because limits and permissions do not bind root.
inline void become_ordinary() {
  if (::geteuid() != 0) return;
  ASSERT_EQ(::setgid(65534), 0);
  ASSERT_EQ(::setuid(65534), 0);
}

}  // namespace redlock::testing
