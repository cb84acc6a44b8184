#include "support/text.hpp"

#include "fuzz.hpp"

using namespace redlock;
using namespace redlock::fuzz;

namespace {

/// What a POSIX shell reads from a word of single-quoted parts and `\'`.
std::string unquoted(std::string_view word) {
  std::string text;
  bool inside = false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '\'') {
      inside = !inside;
    } else if (inside) {
      check(word[i] != '\\' || (word[i + 1] != '\\' && word[i + 1] != '\''));
      text += word[i];
    } else {
      check(word[i] == '\\' && i + 1 < word.size() && (word[i + 1] == '\'' || word[i + 1] == '\\'));
      text += word[++i];
    }
  }
  check(!inside);
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = text_of(data, size);

  const std::string escaped = escape_for_terminal(text);
  check(is_printable_utf8(escaped));
  check(escaped.size() <= 4 * text.size());
  if (text.find('\\') == std::string_view::npos)
    check(escape_for_terminal(escaped).size() >= escaped.size());

  const std::string utf8 = to_valid_utf8(text);
  check(to_valid_utf8(utf8) == utf8);
  if (is_printable_utf8(text)) check(utf8 == text);

  check(unquoted(shell_quote(text)) == text);
  return 0;
}
