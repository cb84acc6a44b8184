#pragma once

#include <algorithm>
#include <string_view>

#include "store/script.hpp"
#include "support/number.hpp"

namespace redlock::fuzz {

/// Takes the text up to the separator off the front.
inline std::string_view take(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

/// Deeper than any reply that ReplyReader lets through.
inline constexpr int max_depth = 5;

/// The reply at the front of a notation without lengths, so that a mutation changes what a reply
/// says and leaves its form alone. A line each: `(` begins an array and `)` ends it; `:12`;
/// `$text`, `+status` and `-error`, where the byte 1 stands for a newline. Any other line is nil.
inline Reply take_reply(std::string_view& notation, int depth = 0) {
  const std::string_view line = take(notation, '\n');
  Reply reply;
  if (line.empty()) return reply;
  const std::string_view rest = line.substr(1);
  switch (line[0]) {
    case '(':
      reply.type = Reply::Type::array;
      while (!notation.empty() && notation[0] != ')' && depth < max_depth)
        reply.elements.push_back(take_reply(notation, depth + 1));
      take(notation, '\n');
      return reply;
    case ':':
      reply.type = Reply::Type::integer;
      reply.integer = whole_number(rest).value_or(0);
      return reply;
    case '$':
      reply.type = Reply::Type::text;
      break;
    case '+':
      reply.type = Reply::Type::status;
      break;
    case '-':
      reply.type = Reply::Type::error;
      break;
    default:
      return reply;
  }
  reply.text = rest;
  std::replace(reply.text.begin(), reply.text.end(), '\x01', '\n');
  return reply;
}

}  // namespace redlock::fuzz
