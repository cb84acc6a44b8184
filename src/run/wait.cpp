#include "run/wait.hpp"

#include <fmt/format.h>

#include <utility>

#include "child/ancestry.hpp"
#include "core/protocol.hpp"
#include "output/describe.hpp"
#include "run/wait_line.hpp"
#include "run/wait_report.hpp"
#include "support/duration.hpp"
#include "support/spawn.hpp"

namespace redlock::run {
namespace {

constexpr std::chrono::seconds redraw_interval{1};

/// Whether an attempt shows anything but what the last one showed.
class WaitNews {
 public:
  bool differs(const Resource& resource, const AttemptFailure& failure) {
    State state{resource.key(), failure.why, failure.queue.queued, failure.queue.ahead,
                failure.holder ? failure.holder->id.text : std::string()};
    return std::exchange(last_, state) != state;
  }

 private:
  struct State {
    std::string key;
    AcquireDecision why;
    bool queued;
    std::size_t ahead;
    std::string holder;
    friend bool operator==(const State&, const State&) = default;
  };
  std::optional<State> last_;
};

/// Reports a wait to the user: every second on a terminal, whenever the last attempt was; elsewhere
/// only news.
class Reporter {
 public:
  Reporter(const Session& session, std::size_t servers, pid_t job_group)
      : session_(session),
        servers_(servers),
        began_(session.clock().now()),
        report_(began_, servers) {
    const output::Console& console = session.console();
    if (!console.is_quiet() && !console.is_verbose() && !session.json()) line_.emplace(job_group);
  }

  void learn(const Resource& resource, const AttemptFailure& failure) {
    std::string text = fmt::format("{}: {}", output::key_text(resource),
                                   output::failure_text(resource, failure, servers_));
    if (failure.queue.queued)
      text += fmt::format("; {} before us in the queue", failure.queue.ahead);
    session_.console().debug(text);
    if (!failure.unsubscribed.empty() && !std::exchange(told_unsubscribed_, true)) {
      session_.console().detail(
          fmt::format("{}: cannot be notified when it is our turn, so we poll: {}",
                      output::key_text(resource), output::faults_text(failure.unsubscribed)));
    }
    if (failure.queue.cannot_publish && !std::exchange(told_mute_, true)) {
      session_.console().detail(
          fmt::format("{}: the holder may not notify us when it releases it (it lacks +publish, or "
                      "the channels &{}*), so we poll",
                      output::key_text(resource), protocol::word::wake_prefix));
    }
    const Instant now = session_.clock().now();
    report_.learn(resource, failure, now);
    if (news_.differs(resource, failure)) report_waiting(resource, failure, now);
  }

  /// Runs until end(), which clears the line on the terminal.
  static asio::awaitable<void> tell(std::shared_ptr<Reporter> self) {
    while (!self->over_) {
      co_await sleep_until(self->session_.clock(), self->session_.clock().now() + redraw_interval);
      if (!self->over_) self->tell_now();
    }
  }

  void end() {
    over_ = true;
    line_.reset();
  }

 private:
  void tell_now() {
    const Instant now = session_.clock().now();
    const std::string line = report_.line(now);
    if (line_ && !line.empty() && line_->draw("redlock-cli: " + line)) {
      report_.shown(now);
      session_.events().report(output::event::WaitShown{});
    } else if (const auto news = report_.news(now)) {
      session_.console().notice(*news);
      session_.events().report(output::event::WaitShown{});
    }
  }

  void report_waiting(const Resource& resource, const AttemptFailure& failure, Instant now) {
    std::optional<std::size_t> position;
    if (failure.queue.queued) position = failure.queue.ahead + 1;
    session_.events().report(
        output::event::Waiting{resource, failure.holder, position, failure.faults,
                               output::failure_text(resource, failure, servers_), now - began_});
  }

  const Session& session_;
  std::size_t servers_;
  Instant began_;
  WaitReport report_;
  WaitNews news_;
  std::optional<WaitLine> line_;
  bool told_unsubscribed_ = false;
  bool told_mute_ = false;
  bool over_ = false;
};

/// Reports one wait for as long as this lives.
class Reporting {
 public:
  Reporting(Session& session, pid_t job_group)
      : reporter_(std::make_shared<Reporter>(session, session.server_set().size(), job_group)) {
    if (session.console().is_silent()) return;
    spawn(session.server_set().executor(),
          [reporter = reporter_] { return Reporter::tell(reporter); });
  }
  ~Reporting() { reporter_->end(); }
  Reporting(const Reporting&) = delete;
  Reporting& operator=(const Reporting&) = delete;

  Reporter* operator->() { return reporter_.get(); }

 private:
  std::shared_ptr<Reporter> reporter_;
};

/// Whether the holder, of our host, is an ancestor of ours that waits for us, and nothing but its
/// lease is in our way. A parent lease that no quorum has told of yet may still be inherited.
bool is_held_around_us(const Resource& resource, const AttemptFailure& failure,
                       const std::string& our_host) {
  using Why = AcquireDecision;
  const bool is_busy =
      failure.why == Why::busy || failure.why == Why::maybe_busy || failure.why == Why::split;
  if (!is_busy || !failure.holder || !failure.holder->owner) return false;
  const Owner& owner = *failure.holder->owner;
  if (owner.host != our_host || owner.finished) return false;
  const auto pid = static_cast<pid_t>(owner.pid);
  if (owner.supervised) return child::runs_us(pid, resource.key());
  return owner.pid_start > 0 && child::is_ancestor(pid, owner.pid_start);
}

/// What to append to "busy" when a wait has ended: `; waited for 10s (--wait)`, or nothing if there
/// was no wait.
std::string end_of_wait_text(const WaitPolicy& policy) {
  if (!policy.wait || *policy.wait == Duration::zero()) return {};
  return fmt::format("; waited for {} (--wait)", format_duration(*policy.wait));
}

}  // namespace

output::Outcome outcome_of_wait(std::string_view command, const LockOptions& options,
                                const WaitFailure& failed, std::size_t servers) {
  const AttemptFailure& failure = failed.failure;
  const output::CommandResult how = output::result_of(failure.why);
  const bool is_busy = how == output::CommandResult::busy;
  std::string text = output::failure_text(failed.resource, failure, servers);
  if (is_busy) text += end_of_wait_text(options.wait);
  output::Outcome outcome = output::outcome_of(command, {failed.resource}, how, std::move(text));
  if (is_busy || how == output::CommandResult::superseded)
    outcome.exit_code = options.conflict_exit_code;
  outcome.holder = failure.holder;
  outcome.faults = failure.faults;
  outcome.superseded_by = failure.queue.superseded_by;
  return outcome;
}

void report_acquired(Session& session, const std::vector<Lease>& leases, Duration waited) {
  const ServerSet& servers = session.server_set();
  std::vector<ServerFault> faults = servers.faults();
  // A server whose answer is on its way may have granted it, too; it does not count.
  std::size_t votes = 0;
  for (std::size_t i = 0; i < servers.size(); ++i) votes += servers.votes(i) ? 1 : 0;
  session.events().report(
      output::event::Acquired{leases, waited, votes, servers.size(), std::move(faults)});
}

void report_not_acquired(const Session& session, const output::Outcome& outcome, Duration waited) {
  using output::CommandResult;
  if (outcome.result == CommandResult::superseded || outcome.result == CommandResult::fresh) return;
  session.events().report(output::event::NotAcquired{outcome, waited});
}

asio::awaitable<Result<std::shared_ptr<HeldSet>, WaitFailure>> wait_for_locks(
    Session& session, std::vector<AcquireOrder> orders, WaitPolicy policy, bool insists_on_wait,
    pid_t job_group) {
  const Instant began = session.clock().now();
  const std::string host = orders.front().owner.host;
  bool told_around_us = false;
  LeaseId looked_at;
  std::optional<Reporting> reporting;
  SetWaiter waiter(session.server_set(), std::move(orders), policy, session.interrupt());
  for (;;) {
    auto result = co_await waiter.next();
    if (result) co_return std::move(*result);
    WaitFailure& failure = result.error();
    if (failure.final) {
      if (failure.failure.why == AcquireDecision::superseded) {
        session.events().report(output::event::Superseded{
            failure.resource, failure.failure.queue.superseded_by, session.clock().now() - began});
      }
      co_return unexpected<WaitFailure>(std::move(failure));
    }
    // Most locks are free: then there is no timer to set.
    if (!reporting) reporting.emplace(session, job_group);
    (*reporting)->learn(failure.resource, failure.failure);
    const auto& holder = failure.failure.holder;
    const bool is_new = holder && std::exchange(looked_at, holder->id) != holder->id;
    if (!is_new || told_around_us || !is_held_around_us(failure.resource, failure.failure, host))
      continue;
    if (!insists_on_wait) {
      co_await waiter.give_up();
      failure.failure.why = AcquireDecision::held_around_us;
      failure.final = true;
      co_return unexpected<WaitFailure>(std::move(failure));
    }
    told_around_us = true;
    session.console().notice(
        fmt::format("{}: {}", output::key_text(failure.resource),
                    output::held_around_us_text(*failure.failure.holder->owner)));
  }
}

}  // namespace redlock::run
