#include "output/request_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "output/text_parts.hpp"
#include "support/text.hpp"

namespace redlock::output {
namespace {

/// ` ("roll back")`.
std::string reason_text(const std::string& reason) {
  return reason.empty() ? "" : fmt::format(" (\"{}\")", escape_for_terminal(reason));
}

}  // namespace

std::string request_text(const StopRequest& request) {
  return person_text(request.user, request.host) + reason_text(request.reason);
}

std::string asked_text(const StopRequest& request) {
  return (request.newer ? "asked to stop for a newer run of " : "asked to stop by ") +
         request_text(request);
}

std::string stopped_text(const StopRequest& request) {
  return (request.newer ? "stopped for a newer run of " : "stopped at the request of ") +
         request_text(request);
}

std::string broke_text(const Owner& breaker) {
  return person_text(breaker.user, breaker.host) + " broke it with `release --force`" +
         reason_text(breaker.note);
}

std::string sent_away_text(const SentAway& waiters) {
  if (waiters.number + waiters.unreached == 0) return "no waiters";
  std::string text =
      fmt::format("{} waiter{} sent away", waiters.number, waiters.number == 1 ? "" : "s");
  if (waiters.unreached == 0) return text;
  std::vector<std::string> names;
  std::ranges::transform(waiters.first_unreached, std::back_inserter(names), owner_text);
  return fmt::format("{}; {} not reached, which give{} up when running again: {}{}", text,
                     waiters.unreached, waiters.unreached == 1 ? "s" : "", fmt::join(names, ", "),
                     names.size() < waiters.unreached ? ", ..." : "");
}

}  // namespace redlock::output
