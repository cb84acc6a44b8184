// What Redis servers say of themselves, of each other, and in errors. The first byte chooses the
// parser.
#include "store/redis/topology.hpp"

#include "fuzz.hpp"
#include "output/doctor.hpp"
#include "output/table.hpp"
#include "reply_text.hpp"
#include "store/redis/error_reply.hpp"
#include "store/redis/findings.hpp"
#include "store/redis/server_info.hpp"

using namespace redlock;
using namespace redlock::fuzz;
using namespace redlock::redis;

namespace {

const Address asked{"10.0.0.1", 6379};
constexpr std::uint16_t last_slot = 16383;

void check_address(const Address& address) {
  check(!address.host.empty() && address.port != 0);
  check(address.host.find_first_of(std::string_view(" \n\r\t\0", 5)) == std::string::npos);
}

void check_slots(std::string_view text) {
  const auto ranges = slots_from(take_reply(text), asked);
  if (!ranges) return check(is_printable_utf8(ranges.error().text));
  for (const SlotRange& range : *ranges) {
    check(range.first <= range.last && range.last <= last_slot);
    check_address(range.master);
    for (const Address& replica : range.replicas) check_address(replica);
  }
}

void check_error(std::string_view text) {
  const Fault fault = fault_of_error(text);
  check(!fault.text.empty() && is_printable_utf8(fault.text));
  check(is_printable_utf8(quote_of(text)));
  check(!means_the_same(text, text) == is_redirect(text));
  const auto redirect = redirect_from(text, asked);
  if (!redirect) return check(is_printable_utf8(redirect.error().text));
  if (*redirect) check_address((*redirect)->to);
}

/// As `doctor` shows what INFO, TIME and CONFIG GET say.
void check_report(std::string_view text) {
  const Reply info = take_reply(text);
  ServerReport report = report_from(info.text);
  report.facts = facts_from(info, Instant(), Instant(Milliseconds(1)));
  if (const auto time = time_from(take_reply(text))) report.clock_offset = *time;
  report.append_fsync = configured(take_reply(text)).value_or("");
  report.save = configured(take_reply(text));
  report = weaker(report, report_from(text));

  const Finding lock{Level::good, "lock", "it can be locked"};
  const std::vector<Diagnosis> two(2, diagnosis_of(report, lock, {Milliseconds(1000), 1}));
  const SetDiagnosis set = judge({"redis://a", "redis://b"}, two, Milliseconds(50));
  std::string shown = output::diagnosis_text(set, output::any_width);
  for (std::string_view rest = shown; !rest.empty();) check(is_printable_utf8(take(rest, '\n')));
  const std::string json = output::diagnosis_json(set, 0);
  check(json.find_first_of("\n\r\x1b") == std::string::npos);
  check(is_json(json));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text = text_of(data + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      check_slots(text);
      break;
    case 1:
      check_error(text);
      break;
    default:
      check_report(text);
      break;
  }
  return 0;
}
