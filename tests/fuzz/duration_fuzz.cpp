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
  check(text.find_first_not_of("0123456789.dhms") == std::string_view::npos);
  check(is_printable_utf8(format_duration(*span)));
  check(format_duration(-*span) == "0s");

  // Written out in the smallest unit there is, it is the same.
  const auto milliseconds = std::chrono::duration_cast<Milliseconds>(*span);
  check(parse_duration(std::to_string(milliseconds.count()) + "ms") == milliseconds);
  return 0;
}
