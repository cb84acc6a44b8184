#include "support/line_writer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <system_error>

namespace redlock {
namespace {

constexpr std::size_t page = 4096;

/// Two ends of something to write to.
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

TEST(LineWriter, DropsWhatDoesNotFitAndGoesOnLater) {
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

TEST(LineWriter, LeavesTheSharedDescriptionBlocking) {
  const Ends ends = Ends::pipe();
  LineWriter writer(ends.writer.get());
  (void)writer.write("one\n");
  EXPECT_EQ(::fcntl(ends.writer.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(LineWriter, AReaderThatIsGoneIsNoSignal) {
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
