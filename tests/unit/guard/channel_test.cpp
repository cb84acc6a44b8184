#include "guard/channel.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "../in_child.hpp"

namespace redlock::guard {
namespace {

using namespace testing;

/// Returns the next message; fails the test if there is none.
Message received(const Channel& channel) {
  const auto [message, empty] = channel.receive();
  EXPECT_TRUE(message.has_value());
  return message.value_or(Message{});
}

/// Why there is no message.
Channel::Empty emptiness(const Channel& channel) {
  const auto [message, empty] = channel.receive();
  EXPECT_FALSE(message.has_value());
  return empty;
}

TEST(Channel, IsEmptyAtFirst) {
  const auto [ours, theirs] = Channel::make_pair();
  EXPECT_EQ(emptiness(ours), Channel::Empty::nothing_yet);
  EXPECT_EQ(emptiness(theirs), Channel::Empty::nothing_yet);
}

TEST(Channel, CarriesWholeMessagesInOrderBothWays) {
  const auto [ours, theirs] = Channel::make_pair();
  ours.send({Message::Kind::signal, SIGTERM, {}});
  ours.send({Message::Kind::go, 2, {}});
  theirs.send({Message::Kind::exited, -SIGINT, std::string("a\0b\n", 4)});

  const Message first = received(theirs);
  EXPECT_EQ(first.kind, Message::Kind::signal);
  EXPECT_EQ(first.number, SIGTERM);
  EXPECT_EQ(first.text, "");
  const Message second = received(theirs);
  EXPECT_EQ(second.kind, Message::Kind::go);
  EXPECT_EQ(second.number, 2);
  EXPECT_EQ(emptiness(theirs), Channel::Empty::nothing_yet);

  const Message third = received(ours);
  EXPECT_EQ(third.kind, Message::Kind::exited);
  EXPECT_EQ(third.number, -SIGINT);
  EXPECT_EQ(third.text, std::string("a\0b\n", 4));
}

TEST(Channel, MessagesSentBeforeTheEndArriveBeforeIt) {
  auto [ours, theirs] = Channel::make_pair();
  theirs.send({Message::Kind::started, 0, {}});
  theirs.send({Message::Kind::exited, 7, "done"});
  { const Channel ended = std::move(theirs); }
  EXPECT_EQ(received(ours).kind, Message::Kind::started);
  EXPECT_EQ(received(ours).number, 7);
  EXPECT_EQ(emptiness(ours), Channel::Empty::ended);
  EXPECT_EQ(emptiness(ours), Channel::Empty::ended);
}

TEST(Channel, ReportsThatTheOtherProcessWasKilled) {
  auto [ours, theirs] = Channel::make_pair();
  const pid_t other = forked([] { return ::pause(); });
  { const Channel only_theirs_now = std::move(theirs); }
  EXPECT_EQ(emptiness(ours), Channel::Empty::nothing_yet);
  ::kill(other, SIGKILL);
  status_of(other);
  EXPECT_EQ(emptiness(ours), Channel::Empty::ended);
}

TEST(Channel, SendingToAPeerThatIsGoneDoesNothing) {
  in_child([] {
    ::signal(SIGPIPE, SIG_DFL);
    auto [ours, theirs] = Channel::make_pair();
    { const Channel ended = std::move(theirs); }
    EXPECT_FALSE(ours.send({Message::Kind::signal, SIGTERM, "text"}));
    EXPECT_EQ(emptiness(ours), Channel::Empty::ended);
  });
}

TEST(Channel, ATextOfAnyLengthArrivesWholeThroughTheSmallestSocketBuffer) {
  const auto [ours, theirs] = Channel::make_pair();
  const int smallest = 0;  // the kernel takes its minimum
  ASSERT_EQ(::setsockopt(ours.fd(), SOL_SOCKET, SO_SNDBUF, &smallest, sizeof smallest), 0);
  for (const std::size_t length :
       {0U, 1U, 2047U, 2048U, 2049U, 4096U, 131'072U, 131'073U, 50'000'000U}) {
    std::string text(length, 'x');
    if (!text.empty()) text.back() = '!';
    EXPECT_TRUE(ours.send({Message::Kind::exited, 5, text})) << length;
    const Message message = received(theirs);
    EXPECT_EQ(message.number, 5);
    EXPECT_TRUE(message.text == text) << length;
  }
}

TEST(Channel, SendingNeverBlocksEvenIfNothingIsRead) {
  in_child([] {
    const auto [ours, theirs] = Channel::make_pair();
    const std::string text(100'000, 'x');
    int sent = 0;
    while (ours.send({Message::Kind::exited, sent, text})) ++sent;
    EXPECT_GE(sent, 3);
    for (int number = 0; number < sent; ++number) {
      const Message message = received(theirs);
      EXPECT_EQ(message.number, number);
      EXPECT_TRUE(message.text == text);
    }
    EXPECT_EQ(emptiness(theirs), Channel::Empty::nothing_yet);
    EXPECT_TRUE(ours.send({Message::Kind::exited, 0, text}));
  });
}

TEST(Channel, ATextThatDoesNotFitIsNotSentInPart) {
  in_child([] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{10'000, 10'000};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    const auto [ours, theirs] = Channel::make_pair();
    EXPECT_FALSE(ours.send({Message::Kind::exited, 0, std::string(10'001, 'x')}));
    EXPECT_EQ(emptiness(theirs), Channel::Empty::nothing_yet);
    EXPECT_TRUE(ours.send({Message::Kind::exited, 0, std::string(10'000, 'x')}));
    EXPECT_EQ(received(theirs).text.size(), 10'000U);
  });
}

TEST(Channel, ATextThatCannotBeReceivedEndsTheConnection) {
  in_child([] {
    const auto [ours, theirs] = Channel::make_pair();
    ASSERT_TRUE(ours.send({Message::Kind::exited, 0, std::string(10'000, 'x')}));
    const rlimit none{0, 0};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    EXPECT_EQ(emptiness(theirs), Channel::Empty::ended);
  });
}

TEST(Channel, IsNotHandedToCommands) {
  const auto [ours, theirs] = Channel::make_pair();
  EXPECT_EQ(::fcntl(ours.fd(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(::fcntl(theirs.fd(), F_GETFD), FD_CLOEXEC);
}

}  // namespace
}  // namespace redlock::guard
