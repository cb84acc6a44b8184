#include "support/duration.hpp"

#include "fuzz.hpp"

using namespace redlock;
using namespace redlock::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = text_of(data, size);
  const auto span = parse_duration(text);
  if (!span) {
    check(is_printable_utf8(describe(span.error(), text)));
    return 0;
  }
  check(*span >= Duration::zero());
  check(text.find_first_not_of("0123456789.abcdefghijklmnopqrstuvwxyz") == std::string_view::npos);
  check(format_duration(-*span) == "0s");

  // What we print can be read again: for people at most the same, exactly the same to a
  // millisecond.
  const auto shown = parse_duration(format_duration(*span));
  check(shown && *shown <= *span);
  check(*span == infinite_duration ? exact_duration(*span) == "infinity"
                                   : parse_duration(exact_duration(*span)) ==
                                         std::chrono::duration_cast<Milliseconds>(*span));
  return 0;
}
