// What hostile servers answer to the lock scripts: as votes, and as `status` shows them. Of the
// input the first byte chooses the view, the first line is the key, and each reply is a server's.
#include "fuzz.hpp"
#include "output/failure_text.hpp"
#include "output/holder_text.hpp"
#include "output/key_status.hpp"
#include "output/lock_json.hpp"
#include "output/status.hpp"
#include "reply_text.hpp"
#include "store/owner_record.hpp"
#include "store/script_votes.hpp"
#include "support/columns.hpp"

using namespace redlock;
using namespace redlock::fuzz;

namespace {

constexpr std::size_t max_servers = 3;
constexpr Milliseconds at{1'700'000'000'000};

void check_lines(std::string_view text) {
  while (!text.empty()) check(is_printable_utf8(take(text, '\n')));
}

void check_holder(const Holder& holder) {
  check(is_printable_utf8(output::held_text(holder)));
  if (!holder.owner) return;
  const auto again = decode_owner(encode_owner(*holder.owner));
  check(again && again->host == holder.owner->host && again->note == holder.owner->note &&
        again->pid == holder.owner->pid && again->slots == holder.owner->slots);
}

template <class Vote>
void check_vote(const Vote& vote) {
  std::visit(
      [](const auto& answer) {
        if constexpr (requires { answer.holder.id; }) check_holder(answer.holder);
        if constexpr (requires { answer.text; }) check(is_printable_utf8(answer.text));
      },
      vote);
}

void check_votes(const ScriptReply& reply) {
  const AcquireVote acquired = acquire_vote(reply);
  check_vote(acquired);
  if (const auto* granted = std::get_if<Granted>(&acquired)) {
    check(granted->fence <= Fence(Fence::max));
    check(granted->slots.empty() || granted->slots.back() < Mode::max_slots);
  }
  check_vote(raise_vote(reply));
  check_vote(extend_vote(reply));
  check_vote(heal_vote(reply));
  check_vote(release_vote(reply));
  check_vote(break_vote(reply));
  const ExtendVote extended = extend_vote(reply);
  if (const auto* not_ours = std::get_if<NotOurs>(&extended))
    check(is_printable_utf8(output::not_ours_text(*not_ours)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string_view text = text_of(data + 1, size - 1);
  const auto key = Resource::from(take(text, '\n'));
  if (!key) return 0;

  output::StatusReport report;
  report.at = at;
  output::KeyStatus status{*key, {}, {}, {}};
  while (!text.empty() && status.votes.size() < max_servers) {
    const ScriptReply reply = take_reply(text);
    check_votes(reply);
    status.votes.push_back(inspect_vote(reply));
    status.servers.push_back("redis://" + std::to_string(status.votes.size()));
    if (const auto* fault = std::get_if<Fault>(&status.votes.back()))
      report.faults.push_back({status.servers.back(), *fault});
  }
  if (status.votes.empty()) return 0;
  status.inspection = summarize(status.votes);
  report.skipped = report.faults;

  output::StatusView view{(data[0] & 1U) != 0, (data[0] & 2U) != 0, status.votes.size()};
  if ((data[0] & 4U) != 0) view.slots = 3;
  const std::size_t width = data[0] / 8U;
  output::ShownLocks locks(view);
  output::StatusJson as_json;
  for (int i = 0; i < 2; ++i) {
    locks.add(status, at);
    as_json.add(status);
  }
  for (const std::size_t columns : {width, output::any_width})
    check_lines(locks.text(report, columns));
  const auto screen = locks.screen(report, at, width, width + 1);
  check(screen.size() <= width);
  for (const std::string& line : screen)
    check(is_printable_utf8(line) && columns_of(line) <= width + 1);

  const std::string json = std::move(as_json).text(report.faults, report.skipped, 0);
  check(json.find_first_of("\n\r\x1b") == std::string::npos);
  check(is_json(json));
  return 0;
}
