#include "support/line_writer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string>
#include <system_error>
#include <thread>

#include "support/brief_write.hpp"

namespace redlock {
namespace {

constexpr std::size_t page = 4096;

/// The two ends of a pipe or socket pair.
struct Ends {
  UniqueFd reader;
  UniqueFd writer;

  static Ends pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    EXPECT_EQ(::fcntl(ends[1], F_SETPIPE_SZ, page), static_cast<int>(page));
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
  }
  static Ends sockets() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
  }

  [[nodiscard]] std::string read_all() const {
    EXPECT_EQ(::fcntl(reader.get(), F_SETFL, O_NONBLOCK), 0);
    std::string text;
    std::array<char, page> part{};
    for (ssize_t got = 0; (got = ::read(reader.get(), part.data(), part.size())) > 0;)
      text.append(part.data(), static_cast<std::size_t>(got));
    return text;
  }
};

/// While this object lives, a pipe without permissions cannot be reopened, not even by root.
class OtherUser {
 public:
  OtherUser() : before_(::setfsuid(nobody)) {}
  ~OtherUser() { ::setfsuid(static_cast<uid_t>(before_)); }
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;

 private:
  static constexpr uid_t nobody = 65534;
  int before_;
};

Ends forbidden_pipe() {
  Ends ends = Ends::pipe();
  EXPECT_EQ(::fchmod(ends.writer.get(), 0), 0);
  return ends;
}

TEST(LineWriter, WritesToAPipeASocketAndAFile) {
  for (const auto make : {Ends::pipe, Ends::sockets}) {
    Ends ends = make();
    LineWriter writer(ends.writer.get());
    EXPECT_TRUE(writer.write("one\n"));
    EXPECT_TRUE(writer.write("two\n"));
    EXPECT_EQ(ends.read_all(), "one\ntwo\n");
  }
  const UniqueFd file(::open("/tmp", O_TMPFILE | O_RDWR, 0600));
  ASSERT_EQ(::write(file.get(), "before\n", 7), 7);
  EXPECT_TRUE(LineWriter(file.get()).write("one\n"));
  ASSERT_EQ(::write(file.get(), "after\n", 6), 6);
  std::array<char, 64> text{};
  EXPECT_EQ(::pread(file.get(), text.data(), text.size(), 0), 17);
  EXPECT_STREQ(text.data(), "before\none\nafter\n");
}

TEST(LineWriter, DropsWhatDoesNotFitAndWritesLaterLines) {
  for (const auto make : {Ends::pipe, Ends::sockets}) {
    Ends ends = make();
    LineWriter writer(ends.writer.get());
    const std::string line = std::string(page - 1, 'x') + "\n";
    std::size_t written = 0;
    while (writer.write(line)) ++written;
    EXPECT_GE(written, 1U);
    EXPECT_EQ(ends.read_all().substr(0, page), line);
    EXPECT_TRUE(writer.write("later\n"));
    const std::string rest = ends.read_all();
    EXPECT_TRUE(rest.ends_with("\nlater\n") || rest == "later\n") << rest;
  }
}

TEST(LineWriter, CompletesALineThatWasWrittenInPart) {
  const Ends ends = Ends::pipe();
  LineWriter writer(ends.writer.get());
  const std::string line = std::string(2 * page, 'x') + "\n";
  EXPECT_TRUE(writer.write(line)) << "its beginning is written";
  EXPECT_FALSE(writer.write("too much\n"));
  std::string text = ends.read_all();
  while (!writer.write("next\n")) text += ends.read_all();
  EXPECT_EQ(text + ends.read_all(), line + "next\n");
}

TEST(LineWriter, NeverWaitsForWhatCannotBeOpenedAnew) {
  const Ends ends = forbidden_pipe();
  const OtherUser other;
  LineWriter writer(ends.writer.get());
  EXPECT_TRUE(writer.write("one\n"));
  const std::string line = std::string(page - 1, 'x') + "\n";
  while (writer.write(line)) continue;
  EXPECT_TRUE(ends.read_all().starts_with("one\n"));
  EXPECT_TRUE(writer.write("later\n"));
  EXPECT_EQ(::fcntl(ends.writer.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(BriefWrite, GivesUpWhenAWriteBlocks) {
  const Ends ends = Ends::pipe();
  const std::string line(page, 'x');
  EXPECT_EQ(write_briefly(ends.writer.get(), line), static_cast<ssize_t>(page));
  EXPECT_EQ(write_briefly(ends.writer.get(), line), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(ends.read_all(), line);
}

TEST(BriefWrite, NeedsNoTimer) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_SIGPENDING, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_SIGPENDING, &none), 0);
  const Ends ends = Ends::pipe();
  const std::string line(page, 'x');
  const ssize_t written = write_briefly(ends.writer.get(), line);
  const ssize_t blocked = write_briefly(ends.writer.get(), line);
  const int error = errno;
  ASSERT_EQ(::setrlimit(RLIMIT_SIGPENDING, &before), 0);
  EXPECT_EQ(written, static_cast<ssize_t>(page));
  EXPECT_EQ(blocked, -1);
  EXPECT_EQ(error, EAGAIN);
}

TEST(LineWriter, TheLastLineWaitsForItsReaderUpToALimit) {
  const Ends ends = Ends::pipe();
  LineWriter writer(ends.writer.get());
  const std::string line = std::string(2 * page, 'x') + "\n";
  EXPECT_TRUE(writer.write(line));
  EXPECT_FALSE(writer.write_within(Milliseconds(1), "last\n"));
  EXPECT_EQ(::fcntl(ends.reader.get(), F_SETFL, 0), 0);
  std::string text;
  std::thread reader([&ends, &text] {
    std::array<char, page> part{};
    while (!text.ends_with("last\n")) {
      const ssize_t got = ::read(ends.reader.get(), part.data(), part.size());
      if (got <= 0) break;
      text.append(part.data(), static_cast<std::size_t>(got));
    }
  });
  EXPECT_TRUE(writer.write_within(std::chrono::minutes(1), "last\n"));
  reader.join();
  EXPECT_EQ(text, line + "last\n");
}

TEST(LineWriter, TheLastLineDoesNotWaitForAReaderThatIsGone) {
  ::signal(SIGPIPE, SIG_IGN);
  Ends ends = Ends::pipe();
  LineWriter writer(ends.writer.get());
  ends.reader.reset();
  EXPECT_FALSE(writer.write_within(std::chrono::hours(1), "last\n"));
}

TEST(LineWriter, LeavesTheSharedDescriptionBlocking) {
  const Ends ends = Ends::pipe();
  LineWriter writer(ends.writer.get());
  (void)writer.write("one\n");
  EXPECT_EQ(::fcntl(ends.writer.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(LineWriter, AReaderThatIsGoneCausesNoSignal) {
  ::signal(SIGPIPE, SIG_IGN);
  for (const auto make : {Ends::pipe, Ends::sockets}) {
    Ends ends = make();
    LineWriter writer(ends.writer.get());
    ends.reader.reset();
    EXPECT_FALSE(writer.write("one\n"));
  }
}

TEST(LineWriter, RefusesAClosedDescriptor) {
  EXPECT_THROW(LineWriter(-1), std::system_error);
}

}  // namespace
}  // namespace redlock
