#include "store/redis/reply_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "../allocated.hpp"
#include "replies.hpp"

namespace redlock {

bool operator==(const Reply& a, const Reply& b) {
  return a.type == b.type && a.integer == b.integer && a.text == b.text && a.elements == b.elements;
}

void PrintTo(const Reply& reply, std::ostream* out) {
  *out << static_cast<int>(reply.type) << ":" << reply.integer << ":" << reply.text << "[";
  for (const Reply& element : reply.elements) PrintTo(element, out);
  *out << "]";
}

namespace redis {
namespace {

using namespace testing;

using Type = Reply::Type;

Reply nil() {
  return {};
}
Reply status(std::string value) {
  return {Type::status, 0, std::move(value), {}};
}

std::string bulk(std::string_view value) {
  return "$" + std::to_string(value.size()) + "\r\n" + std::string(value) + "\r\n";
}

std::string nested(std::size_t depth) {
  std::string bytes;
  for (std::size_t i = 0; i < depth; ++i) bytes += "*1\r\n";
  return bytes + ":1\r\n";
}

std::string repeated(std::size_t times, std::string_view unit) {
  std::string bytes;
  for (std::size_t i = 0; i < times; ++i) bytes += unit;
  return bytes;
}

/// What a fresh reader makes of the bytes.
Result<std::optional<Reply>, std::string> read(std::string_view bytes,
                                               const ReplyLimits& limits = {}) {
  ReplyReader reader;
  reader.feed(bytes);
  return reader.next(limits);
}

/// The next reply of a reader that is expected to be content.
std::optional<Reply> next(ReplyReader& reader) {
  auto reply = reader.next({});
  if (reply) return std::move(*reply);
  ADD_FAILURE() << reply.error();
  return std::nullopt;
}

void expect_reply(std::string_view bytes, const Reply& expected, const ReplyLimits& limits = {}) {
  const auto reply = read(bytes, limits);
  ASSERT_TRUE(reply.has_value()) << bytes.substr(0, 80) << ": " << reply.error();
  ASSERT_TRUE(reply->has_value()) << bytes.substr(0, 80) << ": not complete";
  EXPECT_EQ(**reply, expected) << bytes.substr(0, 80);
}

/// Fed in pieces as they come from a socket, until it is refused; false when the reader takes it
/// all.
bool is_refused(std::string_view bytes, const ReplyLimits& limits = {}) {
  constexpr std::size_t piece = 4096;
  ReplyReader reader;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    reader.feed(bytes.substr(at, piece));
    const auto reply = reader.next(limits);
    if (reply) continue;
    EXPECT_FALSE(reader.next(limits).has_value()) << "an error must be final";
    reader.feed("+OK\r\n");
    EXPECT_FALSE(reader.next(limits).has_value()) << "an error must be final";
    return true;
  }
  return false;
}

TEST(ReplyReader, ReadsTheFiveTypes) {
  expect_reply("$-1\r\n", nil());
  expect_reply("*-1\r\n", nil());
  expect_reply(":0\r\n", integer(0));
  expect_reply(":-42\r\n", integer(-42));
  expect_reply(":9223372036854775807\r\n", integer(INT64_MAX));
  expect_reply(":-9223372036854775808\r\n", integer(INT64_MIN));
  expect_reply("$0\r\n\r\n", text(""));
  expect_reply("$5\r\nhello\r\n", text("hello"));
  expect_reply("$4\r\n\r\n\r\n\r\n", text("\r\n\r\n"));
  expect_reply(bulk(std::string("\0\x1b\xff", 3)), text(std::string("\0\x1b\xff", 3)));
  expect_reply("+OK\r\n", status("OK"));
  expect_reply("+\r\n", status(""));
  expect_reply("-ERR no\r\n", error("ERR no"));
  expect_reply("*0\r\n", array({}));
  expect_reply("*3\r\n:1\r\n$1\r\na\r\n+b\r\n", array({integer(1), text("a"), status("b")}));
}

TEST(ReplyReader, ReadsNestedArrays) {
  expect_reply("*2\r\n*2\r\n:1\r\n*1\r\n$-1\r\n*2\r\n-no\r\n*0\r\n",
               array({array({integer(1), array({nil()})}), array({error("no"), array({})})}));
}

TEST(ReplyReader, KeepsRepliesApart) {
  ReplyReader reader;
  reader.feed("+one\r\n:2\r\n$5\r\nth");
  EXPECT_EQ(next(reader), std::optional(status("one")));
  EXPECT_EQ(next(reader), std::optional(integer(2)));
  EXPECT_EQ(next(reader), std::nullopt);
  reader.feed("ree\r\n");
  EXPECT_EQ(next(reader), std::optional(text("three")));
  EXPECT_EQ(next(reader), std::nullopt);
}

TEST(ReplyReader, DoesNotCareWhereTheBytesAreSplit) {
  const std::string bytes =
      "*4\r\n$7\r\ngranted\r\n:1234\r\n*2\r\n$-1\r\n-ERR x\r\n+OK\r\n$2\r\n\r\n\r\n";
  const Reply first =
      array({text("granted"), integer(1234), array({nil(), error("ERR x")}), status("OK")});
  for (std::size_t split = 0; split <= bytes.size(); ++split) {
    ReplyReader reader;
    std::vector<Reply> replies;
    for (const std::string& part : {bytes.substr(0, split), bytes.substr(split)}) {
      reader.feed(part);
      for (auto reply = reader.next({}); reply && *reply; reply = reader.next({}))
        replies.push_back(std::move(**reply));
    }
    EXPECT_EQ(replies, (std::vector{first, text("\r\n")})) << "split at " << split;
  }
}

TEST(ReplyReader, ReadsSingleBytes) {
  ReplyReader reader;
  const std::string bytes = "*2\r\n$3\r\nabc\r\n:7\r\n";
  for (const char byte : bytes.substr(0, bytes.size() - 1)) {
    reader.feed({&byte, 1});
    ASSERT_EQ(next(reader), std::nullopt);
  }
  reader.feed("\n");
  EXPECT_EQ(next(reader), std::optional(array({text("abc"), integer(7)})));
}

TEST(ReplyReader, ForgetsAnUnfinishedReplyWhenItEnds) {
  ReplyReader reader;
  reader.feed("*3\r\n$3\r\nabc\r\n*2\r\n:1\r\n");
  EXPECT_EQ(next(reader), std::nullopt);
}

TEST(ReplyReader, GoesUpToItsLimitsAndNoFurther) {
  const ReplyLimits limits;
  EXPECT_TRUE(read(nested(limits.depth)).has_value());
  EXPECT_TRUE(is_refused(nested(limits.depth + 1)));
  EXPECT_TRUE(is_refused(nested(100)));

  expect_reply("*64\r\n" + repeated(64, ":1\r\n"), array(std::vector<Reply>(64, integer(1))));
  EXPECT_TRUE(is_refused("*65\r\n"));
  EXPECT_TRUE(is_refused("*2\r\n:1\r\n*65\r\n"));

  expect_reply(bulk(std::string(limits.bulk, 'x')), text(std::string(limits.bulk, 'x')));
  EXPECT_TRUE(is_refused(bulk(std::string(limits.bulk + 1, 'x'))));
  EXPECT_TRUE(is_refused("+" + std::string(limits.bulk + 1, 'x') + "\r\n"));
}

TEST(ReplyReader, RefusesAHugeCountBeforeMemoryIsSpentOnIt) {
  EXPECT_TRUE(is_refused("*2147483647\r\n"));
  EXPECT_TRUE(is_refused("*4294967296\r\n"));
  EXPECT_TRUE(is_refused("*9223372036854775807\r\n"));
  EXPECT_TRUE(is_refused("*99999999999999999999\r\n"));
  EXPECT_TRUE(is_refused("$99999999999999999999\r\n"));
}

TEST(ReplyReader, BoundsWhatItKeeps) {
  const ReplyLimits limits;
  const std::string filler(limits.total + 4096, 'x');
  EXPECT_TRUE(is_refused("$2147483647\r\n" + filler));
  EXPECT_TRUE(is_refused("+" + filler));
  EXPECT_TRUE(is_refused(filler));
  // Every string and every array is small enough, but not all of them together.
  EXPECT_TRUE(is_refused("*64\r\n" + repeated(5, bulk(std::string(limits.bulk, 'x')))));
  EXPECT_TRUE(
      is_refused("*64\r\n" + repeated(64, "*64\r\n" + repeated(64, bulk(std::string(64, 'x'))))));
}

/// How much more of the heap was in use, at most, while a reader got this in pieces.
std::size_t heap_for(std::string_view bytes, const ReplyLimits& limits) {
  constexpr std::size_t piece = 4096;
  const std::size_t before = unit::allocated();
  std::size_t most = before;
  ReplyReader reader;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    reader.feed(bytes.substr(at, piece));
    const auto reply = reader.next(limits);
    most = std::max(most, unit::allocated());
    if (!reply) break;
  }
  return most - before;
}

TEST(ReplyReader, SpendsNoMoreMemoryThanItMayHoweverSmallTheElements) {
  const std::size_t untouched = unit::allocated();
  const std::string probe(4096, 'x');
  ASSERT_GT(unit::allocated(), untouched) << "what is counted is not this program's heap";
  const ReplyLimits large{4, 16 * 1024, 64 * 1024, 16 * 1024 * 1024};
  for (const ReplyLimits& limits : {ReplyLimits{}, large}) {
    const std::string count = std::to_string(limits.elements);
    const std::string row = "*" + count + "\r\n";
    for (const std::string_view element : {":1\r\n", "*0\r\n", "$0\r\n\r\n", "*-1\r\n"}) {
      const std::size_t times = std::min<std::size_t>(
          limits.elements, 16 * 1024 * 1024 / (element.size() * limits.elements));
      const std::string bytes =
          "*1\r\n" + row + repeated(times, row + repeated(limits.elements, element));
      EXPECT_LT(heap_for(bytes, limits), limits.total * 5 / 4) << element;
    }
    EXPECT_LT(heap_for("$2147483647\r\n" + std::string(limits.total, 'x'), limits),
              4 * limits.bulk);
    EXPECT_LT(heap_for("+" + std::string(limits.total, 'x'), limits), 4 * limits.bulk);
  }
}

TEST(ReplyReader, CountsTheMemoryOfEveryReplyAnew) {
  EXPECT_FALSE(is_refused(repeated(100, "*64\r\n" + repeated(64, ":1\r\n"))));
  EXPECT_TRUE(is_refused("*64\r\n" + repeated(64, "*64\r\n" + repeated(64, ":1\r\n"))));
}

TEST(ReplyReader, CountsEveryReplyAnew) {
  const ReplyLimits limits;
  EXPECT_FALSE(is_refused(repeated(20, bulk(std::string(limits.bulk, 'x')))));
}

TEST(ReplyReader, TakesLargerRepliesWhereTheCallerExpectsThem) {
  const ReplyLimits large{4, 1000, 64 * 1024, 16 * 1024 * 1024};
  EXPECT_FALSE(is_refused("*1000\r\n" + repeated(1000, bulk(std::string(4096, 'x'))), large));
  EXPECT_TRUE(is_refused("*1001\r\n", large));
}

TEST(ReplyReader, RefusesWhatIsNotRedisProtocol) {
  for (const std::string_view bytes : {
           "*-2\r\n",
           "$-2\r\n",
           "$-2147483648\r\n",
           "*x\r\n",
           "$x\r\n",
           "$\r\n\r\n",
           "*\r\n",
           ":\r\n",
           ":12a\r\n",
           ":9223372036854775808\r\n",
           "$3\r\nabcde",
           "$3\r\nabc\r\r",
           "$3\r\nabcx\n",
           "garbage\r\n",
           "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
           "<html>\r\n",
           "SSH-2.0-OpenSSH_9.2p1\r\n",
           "\x15\x03\x01\x02\x02\x16",
           "\r\n",
           "\xff\xfe\r\n",
       }) {
    EXPECT_TRUE(is_refused(bytes)) << bytes;
  }
}

TEST(ReplyReader, RefusesTypesThatWereNeverAskedFor) {
  for (const std::string_view bytes :
       {"%1\r\n+a\r\n:1\r\n", "~1\r\n:1\r\n", "_\r\n", ",1.5\r\n", "#t\r\n",
        "(12345678901234567890\r\n", ">1\r\n+message\r\n", "=5\r\ntxt:x\r\n", "|1\r\n+a\r\n:1\r\n",
        "!3\r\nERR\r\n", "*1\r\n_\r\n", "*1\r\n%1\r\n+a\r\n:1\r\n"}) {
    EXPECT_TRUE(is_refused(bytes)) << bytes;
  }
}

TEST(ReplyReader, DoesNotRepeatTheBytesInItsErrors) {
  for (const std::string_view bytes :
       {"secret\x1b[31m\r\n", "*65\r\nsecret\x1b", "$-7\r\nsecret\x1b"}) {
    const auto reply = read(bytes);
    ASSERT_FALSE(reply.has_value());
    EXPECT_EQ(reply.error().find("secret"), std::string::npos);
    EXPECT_EQ(reply.error().find('\x1b'), std::string::npos);
  }
}

}  // namespace
}  // namespace redis
}  // namespace redlock
