#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace redlock {

/// Makes text from elsewhere (servers, keys, other people's notes) safe to show on a terminal. C0,
/// DEL, C1, bidi controls, line and paragraph separators, zero-width characters and bytes that are
/// not UTF-8 become visible escapes (`\n`, `\x1b`, `\u202e`). A backslash becomes `\\`, so that the
/// result is unambiguous. Everything else passes unchanged.
std::string escape_for_terminal(std::string_view text);

/// Replaces what is not UTF-8 by U+FFFD: for JSON, which can carry nothing else.
std::string to_valid_utf8(std::string_view text);

/// `text`, or where that is longer than `max_bytes` its beginning with `…`, cut between characters,
/// of at most that many bytes.
std::string shortened(std::string_view text, std::size_t max_bytes);

/// `text` as one word of a POSIX shell, always in single quotes: `it's` becomes `'it'\''s'`.
std::string shell_quote(std::string_view text);

/// `text` as a user would type it in a shell: quoted only where it must be, and escaped where a
/// terminal would act on it.
std::string shell_word(std::string_view text);

/// ASCII letters in lower case, all else unchanged.
std::string lower_case(std::string_view text);

/// What an errno means, as a clause in a sentence: `permission denied`.
std::string errno_text(int error);

}  // namespace redlock
