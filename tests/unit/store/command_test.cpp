#include "store/redis/command.hpp"

#include <gtest/gtest.h>

namespace redlock::redis {
namespace {

std::string bytes_of(const Command& command) {
  const std::string bytes = EncodedCommand(command).bytes();
  const std::vector<std::string_view> views(command.begin(), command.end());
  EXPECT_EQ(EncodedCommand(views).bytes(), bytes);
  return bytes;
}

TEST(EncodedCommand, IsAnArrayOfBulkStrings) {
  EXPECT_EQ(bytes_of({"PING"}), "*1\r\n$4\r\nPING\r\n");
  EXPECT_EQ(bytes_of({"SET", "a key", ""}), "*3\r\n$3\r\nSET\r\n$5\r\na key\r\n$0\r\n\r\n");
  EXPECT_EQ(bytes_of({"GET", std::string("\0\r\n\xff", 4)}),
            std::string("*2\r\n$3\r\nGET\r\n$4\r\n\0\r\n\xff\r\n", 23));
}

}  // namespace
}  // namespace redlock::redis
