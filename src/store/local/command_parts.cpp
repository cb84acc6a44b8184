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
  return std::equal(text.begin(), text.end(), upper.begin(), upper.end(),
                    [](char a, char b) { return std::toupper(static_cast<unsigned char>(a)) == b; });
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
  std::array<char, 32> text{};
  const int length = std::snprintf(text.data(), text.size(), "%.17g", number);
  return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace redlock::local
