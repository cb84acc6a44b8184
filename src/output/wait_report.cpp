#include "output/wait_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/holds.hpp"
#include "core/validity.hpp"
#include "output/failure_text.hpp"
#include "output/table.hpp"
#include "output/text_parts.hpp"
#include "support/columns.hpp"
#include "support/duration.hpp"

namespace redlock::output {
namespace {

constexpr std::chrono::seconds settling_time{1};
constexpr std::chrono::minutes reminder_interval{1};

/// Whether simultaneous attempts compete; they settle within a second.
bool is_settling(const AttemptFailure& failure) {
  return failure.why == AcquireDecision::split || failure.why == AcquireDecision::maybe_busy;
}

/// Whether no lease blocks us, only the order of the queue.
bool is_free(const AttemptFailure& failure) {
  return is_settling(failure) || (failure.why == AcquireDecision::busy && !failure.holder);
}

/// Whether the command that keeps us out is not to be stopped for a newer run.
bool is_irreplaceable_run(const AttemptFailure& failure) {
  if (failure.why != AcquireDecision::busy || !failure.holder || !failure.holder->owner)
    return false;
  const Owner& owner = *failure.holder->owner;
  return owner.supervised && !owner.finished && !owner.place;
}

/// Two failures with the same text count as the same obstacle. Empty: not worth a line.
std::string obstacle_of(const Resource& resource, const AttemptFailure& failure) {
  if (is_free(failure)) return {};
  const std::string kind = failure.why == AcquireDecision::busy
                               ? failure.holder->id.text
                               : std::to_string(static_cast<int>(failure.why));
  return kind + " " + resource.key();
}

/// The holder as extrapolated by `elapsed`, in whole seconds. A lease that is renewed is taken to
/// be renewed when that is due: the next attempt shows if it was not.
Holder later(Holder holder, Duration elapsed) {
  if (holder.age) *holder.age += elapsed;
  if (hold_remaining(holder)) return holder;  // its end is shown, and no time span
  if (holder.age) *holder.age = std::chrono::floor<std::chrono::seconds>(*holder.age);
  const bool is_renewed = holder.owner && !holder.owner->finished &&
                          holder.owner->renewed_for.value_or(Duration::zero()) > Duration::zero();
  if (!holder.remaining) return holder;
  if (is_renewed) {
    const auto ttl = Ttl::from(*holder.owner->renewed_for);
    if (!ttl) return holder;
    const Duration due = ttl->length() - extend_interval(*ttl);
    holder.remaining = std::min(*holder.remaining, std::max(*holder.remaining - elapsed, due));
    return holder;
  }
  holder.remaining = std::chrono::floor<std::chrono::seconds>(
      std::max(Duration::zero(), *holder.remaining - elapsed));
  return holder;
}

/// Whole seconds: a line that is redrawn every second can show nothing finer.
std::string seconds_text(Duration span) {
  return format_duration(std::chrono::floor<std::chrono::seconds>(span));
}

}  // namespace

void WaitReport::learn(const Resource& resource, const AttemptFailure& failure, Instant now) {
  std::string obstacle = obstacle_of(resource, failure);
  const Instant since = known_ && known_->obstacle == obstacle ? known_->since : now;
  known_ = Known{resource, failure, std::move(obstacle), since, now};
}

bool WaitReport::is_reportable(Instant now) const {
  return known_ && now - began_ >= settling_time;
}

std::string WaitReport::queue_text() const {
  if (!known_->failure.queue.queued) return {};
  return ordinal(known_->failure.queue.ahead + 1) + " in queue" + priority_text(priority_);
}

std::string WaitReport::obstacle_text(const AttemptFailure& failure, Instant now) const {
  if (is_free(failure)) return "being handed to the next waiter";
  AttemptFailure as_of_now = failure;
  if (failure.holder) as_of_now.holder = later(*failure.holder, now - known_->at);
  std::string text = output::failure_text(known_->resource, as_of_now, servers_);
  if (replaces_ && is_irreplaceable_run(failure))
    text += "; it runs without --replace, so it is not stopped";
  return text;
}

std::string WaitReport::line(Instant now, std::size_t width) const {
  if (!is_reportable(now)) return {};
  std::string key = output::key_text(known_->resource);
  AttemptFailure failure = known_->failure;
  const std::string queue = queue_text();
  const auto text = [&] {
    return fmt::format("waiting for {} ({}{}{}): {}", key, seconds_text(now - began_),
                       queue.empty() ? "" : ", ", queue, obstacle_text(failure, now));
  };
  Owner* const owner = failure.holder && failure.holder->owner ? &*failure.holder->owner : nullptr;
  // What must be shown: all up to the holder.
  const auto needed = [&] {
    std::string part = text();
    const std::string who = owner != nullptr ? owner_text(*owner) : std::string();
    if (const std::size_t at = part.find(who); at != std::string::npos && !who.empty())
      part.resize(at + who.size());
    return part;
  };
  const auto excess = [&] {
    const std::size_t columns = columns_of(needed());
    return columns - std::min(columns, width);
  };
  const auto shorten = [&](std::string& part) {
    const std::size_t columns = columns_of(part);
    if (const std::size_t over = excess(); over > 0)
      part = shortened_to_columns(part, columns - std::min(over, columns));
  };
  const auto leave_out = [&](std::string& part) {
    if (excess() > 0) part.clear();
  };
  if (owner != nullptr) {
    shorten(owner->note);
    leave_out(owner->note);
    leave_out(owner->command);
    shorten(owner->host);
  }
  shorten(key);
  // The caller may cut at the blank before the pid.
  const bool ends_at_holder =
      columns_of(text()) > width && columns_of(needed()) + columns_of(", ...") > width;
  return ends_at_holder ? needed() : text();
}

std::optional<std::string> WaitReport::news(Instant now) {
  if (!is_reportable(now) || known_->obstacle.empty() || now - known_->since < settling_time)
    return std::nullopt;
  if (const auto reported = reported_.find(known_->obstacle);
      reported != reported_.end() && now - reported->second < reminder_interval)
    return std::nullopt;
  mark_reported(now);
  const std::string queue = queue_text();
  return fmt::format("waiting for {}: {}; {} {}", output::key_text(known_->resource),
                     obstacle_text(known_->failure, now),
                     queue.empty() ? "waited for" : "you are " + queue + " after",
                     seconds_text(now - began_));
}

std::optional<std::string> WaitReport::news_beside_line(Instant now, std::size_t width) {
  if (!is_reportable(now)) return std::nullopt;
  // The line reminds of what was reported.
  if (reported_.contains(known_->obstacle) || columns_of(line(now, any_width)) <= width) {
    mark_reported(now);
    return std::nullopt;
  }
  return news(now);
}

void WaitReport::mark_reported(Instant now) {
  std::erase_if(reported_,
                [&](const auto& entry) { return now - entry.second >= reminder_interval; });
  if (known_) reported_[known_->obstacle] = now;
}

}  // namespace redlock::output
