#include "store/redis/command.hpp"

#include <gtest/gtest.h>
#include <hiredis/hiredis.h>

namespace redlock::redis {
namespace {

std::string bytes_of(const Command& command) {
  const std::string bytes = EncodedCommand(command).bytes();
  const std::vector<std::string_view> views(command.begin(), command.end());
  EXPECT_EQ(EncodedCommand(views).bytes(), bytes);
  return bytes;
}

std::string as_hiredis_encodes(const Command& command) {
  std::vector<const char*> words;
  std::vector<std::size_t> lengths;
  for (const std::string& word : command) {
    words.push_back(word.data());
    lengths.push_back(word.size());
  }
  char* bytes = nullptr;
  const auto length =
      redisFormatCommandArgv(&bytes, static_cast<int>(words.size()), words.data(), lengths.data());
  std::string encoded(bytes, static_cast<std::size_t>(length));
  redisFreeCommand(bytes);
  return encoded;
}

TEST(EncodedCommand, IsAnArrayOfBulkStrings) {
  EXPECT_EQ(bytes_of({"PING"}), "*1\r\n$4\r\nPING\r\n");
  EXPECT_EQ(bytes_of({"SET", "a key", ""}), "*3\r\n$3\r\nSET\r\n$5\r\na key\r\n$0\r\n\r\n");
  EXPECT_EQ(bytes_of({"GET", std::string("\0\r\n\xff", 4)}),
            std::string("*2\r\n$3\r\nGET\r\n$4\r\n\0\r\n\xff\r\n", 23));
}

TEST(EncodedCommand, HasTheBytesThatHiredisEncodes) {
  for (const std::size_t length : {0U, 1U, 9U, 10U, 99U, 100U, 512U, 65'536U, 1'000'000U}) {
    const Command command{"SET", std::string(length, 'k'), std::string(length, '\0')};
    EXPECT_EQ(bytes_of(command), as_hiredis_encodes(command)) << length;
  }
  for (const std::size_t words : {1U, 9U, 10U, 64U, 100U, 1'000U}) {
    const Command command(words, "word");
    EXPECT_EQ(bytes_of(command), as_hiredis_encodes(command)) << words;
  }
}

}  // namespace
}  // namespace redlock::redis
