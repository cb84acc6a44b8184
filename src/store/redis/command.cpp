#include "store/redis/command.hpp"

#include <array>
#include <charconv>
#include <limits>

namespace redlock::redis {
namespace {

/// The bytes of most words at most, with the line before them.
constexpr std::size_t usual_word = 48;

/// `*3` before an array of three, `$5` before a string of five bytes.
void append_head(std::string& bytes, char type, std::size_t number) {
  std::array<char, std::numeric_limits<std::size_t>::digits10 + 1> digits;
  const auto end = std::to_chars(digits.begin(), digits.end(), number).ptr;
  bytes += type;
  bytes.append(digits.begin(), end).append("\r\n");
}

}  // namespace

EncodedCommand::EncodedCommand(std::size_t words) {
  bytes_.reserve(usual_word * words);
  append_head(bytes_, '*', words);
}

EncodedCommand::EncodedCommand(const Command& command) : EncodedCommand(command.size()) {
  for (const std::string& word : command) add(word);
}

void EncodedCommand::add(std::string_view word) {
  append_head(bytes_, '$', word.size());
  bytes_.append(word).append("\r\n");
}

}  // namespace redlock::redis
