#include "store/redis/command.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>

namespace redlock::redis {
namespace {

constexpr std::string_view line_end = "\r\n";

/// A type, a number, and two ends of lines.
constexpr std::size_t max_around_a_word =
    1 + std::numeric_limits<std::size_t>::digits10 + 1 + 2 * line_end.size();

char* put(char* at, std::string_view text) {
  return std::copy(text.begin(), text.end(), at);
}

/// The line before an array of three, `*3`, or a string of five bytes, `$5`.
char* put_head(char* at, char type, std::size_t number) {
  *at++ = type;
  at = std::to_chars(at, at + max_around_a_word, number).ptr;
  return put(at, line_end);
}

template <class Words>
std::string encode(const Words& words) {
  std::size_t max_size = max_around_a_word;
  for (const std::string_view word : words) max_size += word.size() + max_around_a_word;
  std::string bytes(max_size, '\0');
  char* end = put_head(bytes.data(), '*', words.size());
  for (const std::string_view word : words) {
    end = put_head(end, '$', word.size());
    end = put(put(end, word), line_end);
  }
  bytes.resize(static_cast<std::size_t>(end - bytes.data()));
  return bytes;
}

}  // namespace

EncodedCommand::EncodedCommand(const Command& words) : bytes_(encode(words)) {}

EncodedCommand::EncodedCommand(std::span<const std::string_view> words) : bytes_(encode(words)) {}

}  // namespace redlock::redis
