#include "store/local/command_parts.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace redlock::local {
namespace {

/// Below it a double holds every integer, and its 17 digits are that integer's.
constexpr double most_exact = 9007199254740992;  // 2^53

Reply reply_of(Reply::Type type, std::string text) {
  Reply reply;
  reply.type = type;
  reply.text = std::move(text);
  return reply;
}

}  // namespace

Reply nil_reply() {
  return Reply();
}
Reply integer_reply(std::int64_t number) {
  Reply reply;
  reply.type = Reply::Type::integer;
  reply.integer = number;
  return reply;
}
Reply text_reply(std::string text) {
  return reply_of(Reply::Type::text, std::move(text));
}
Reply status_reply(std::string text) {
  return reply_of(Reply::Type::status, std::move(text));
}
Reply error_reply(std::string text) {
  return reply_of(Reply::Type::error, std::move(text));
}
Reply array_reply(std::vector<Reply> elements) {
  Reply reply;
  reply.type = Reply::Type::array;
  reply.elements = std::move(elements);
  return reply;
}

std::string wrong_arity(std::string_view command) {
  std::string text = "ERR wrong number of arguments for '";
  for (const char c : command) text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text + "' command";
}

bool is_word(std::string_view text, std::string_view upper) {
  const auto capital = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
  return std::equal(text.begin(), text.end(), upper.begin(), upper.end(), [=](char a, char b) { return capital(a) == b; });
}

std::optional<std::int64_t> read_integer(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.empty() || (digits[0] == '0' && text != "0")) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<double> read_float(const std::string& text) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0])) != 0) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const double number = std::strtod(text.c_str(), &end);
  const bool does_not_fit = errno == ERANGE && (std::isinf(number) || std::fpclassify(number) == FP_ZERO);
  if (end != text.c_str() + text.size() || does_not_fit || std::isnan(number)) return std::nullopt;
  return number;
}

std::string write_float(double number) {
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  // What nearly all are, and sooner written.
  if (std::abs(number) < most_exact && number == std::trunc(number) && !std::signbit(number)) {
    return std::to_string(static_cast<std::int64_t>(number));
  }
  std::array<char, 32> text{};
  const int length = std::snprintf(text.data(), text.size(), "%.17g", number);
  return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace redlock::local
