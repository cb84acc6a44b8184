#include "run/story.hpp"

#include <fmt/format.h>

#include "child/signals.hpp"
#include "output/describe.hpp"
#include "support/duration.hpp"

namespace redlock::run {
namespace {

namespace event = output::event;

/// `; fence 17; 2 of 3 servers; redis://c: connection refused`.
std::string grant_text(const event::Acquired& acquired) {
  std::string text;
  if (acquired.leases.size() == 1)
    text = fmt::format("; fence {}", acquired.leases.front().fence.value());
  text += fmt::format("; {} of {} server{}", acquired.votes, acquired.servers,
                      acquired.servers == 1 ? "" : "s");
  const std::string faults = output::faults_text(acquired.faults);
  return faults.empty() ? text : text + "; " + faults;
}

}  // namespace

Story::Story(const output::Console& console, const LockOptions& options,
             std::optional<Duration> max_hold)
    : console_(console), key_(output::keys_text(options.resources)), max_hold_(max_hold) {}

void Story::on(const event::Any& event, Milliseconds) {
  std::visit([this](const auto& what) { tell(what); }, event);
}

void Story::tell(const event::Acquired& acquired) {
  const std::string text =
      fmt::format("{}: acquired after {}", key_, format_duration(acquired.waited));
  if (console_.is_verbose()) {
    console_.detail(text + grant_text(acquired));
  } else if (std::exchange(wait_shown_, false)) {
    console_.notice(text);
  }
}

/// An outage that is shorter than the lease is only a detail; a longer one is reported when the
/// command is stopped.
void Story::tell(const event::RenewalFailed& failed) {
  console_.detail(fmt::format("{}: cannot renew, trying on: {}", output::key_text(failed.resource),
                              output::faults_text(failed.faults)));
}

void Story::tell(const event::RenewedAgain&) {
  console_.detail(fmt::format("{}: renewed again", key_));
}

void Story::tell(const event::Lost& lost) {
  console_.error(lost.resource
                     ? fmt::format("{}: lost: {}", output::key_text(*lost.resource), lost.reason)
                     : fmt::format("{}: {}", key_, lost.reason));
}

void Story::tell(const event::Stopping& stopping) {
  if (stopping.why != child::StopReason::max_hold) return;  // the loss is told
  console_.error(
      fmt::format("{}: held for {}, the limit of --max-hold; stopping what runs under it", key_,
                  format_duration(*max_hold_)));
}

void Story::tell(const event::Ended& ended) {
  if (ended.exit_code) status_ = fmt::format("; exit status {}", *ended.exit_code);
  if (ended.signal) status_ = "; died of SIG" + child::signal_name(*ended.signal);
}

void Story::tell(const event::Released& released) {
  const std::string held = format_duration(released.held);
  if (released.inherited) {
    console_.detail(
        fmt::format("{}: done after {}{}; the run or acquire around this one keeps the lock", key_,
                    held, status_));
  } else if (released.expire_in > Duration::zero()) {
    console_.detail(fmt::format("{}: done after {}{}; kept for another {} (--min-hold)", key_, held,
                                status_, format_duration(released.expire_in)));
  } else if (released.confirmed) {
    console_.detail(fmt::format("{}: released after {}{}", key_, held, status_));
  }
}

}  // namespace redlock::run
