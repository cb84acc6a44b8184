#include "commands/wait.hpp"

#include <fmt/format.h>

#include <utility>

#include "commands/conclusion.hpp"
#include "output/failure_text.hpp"
#include "proc/ancestry.hpp"
#include "support/duration.hpp"
#include "support/spawn.hpp"

namespace redlock::commands {
namespace {

constexpr std::chrono::seconds redraw_interval{1};

/// Reports the events of one wait, from its first failed attempt until it is destroyed: one for
/// each attempt, and one per second to redraw the status line, because attempts may be far apart.
class WaitEvents {
 public:
  WaitEvents(Session& session, unsigned priority, bool replaces)
      : session_(session),
        priority_(priority),
        replaces_(replaces),
        began_(session.clock().now()),
        ended_(std::make_shared<bool>(false)) {
    if (session.console().is_silent()) return;
    spawn(session.server_set().executor(),
          [&session, ended = ended_] { return report_seconds(session, ended); });
  }
  ~WaitEvents() {
    *ended_ = true;
    session_.events().report(output::event::WaitEnded{});
  }
  WaitEvents(const WaitEvents&) = delete;
  WaitEvents& operator=(const WaitEvents&) = delete;

  void report(const WaitFailure& failed) {
    const AttemptFailure& failure = failed.failure;
    State state{failed.resource.key(), failure.why, failure.queue.queued, failure.queue.ahead,
                failure.holder ? failure.holder->id.text : std::string()};
    const bool news = std::exchange(last_, state) != state;
    session_.events().report(
        output::event::Waiting{failed.resource, failure, session_.server_set().size(),
                               session_.clock().now() - began_, priority_, replaces_, news});
  }

 private:
  /// The result of one attempt, for comparison with the next.
  struct State {
    std::string key;
    AcquireDecision why;
    bool queued;
    std::size_t ahead;
    std::string holder;
    friend bool operator==(const State&, const State&) = default;
  };

  static asio::awaitable<void> report_seconds(Session& session, std::shared_ptr<bool> ended) {
    while (!*ended) {
      co_await sleep_until(session.clock(), session.clock().now() + redraw_interval);
      if (!*ended) session.events().report(output::event::StillWaiting{});
    }
  }

  Session& session_;
  unsigned priority_;
  bool replaces_;
  Instant began_;
  std::shared_ptr<bool> ended_;  ///< shared with the coroutine, which may outlive this by a second
  std::optional<State> last_;
};

/// Whether only the lease of a holder blocks us. With answers missing, a parent lease may still be
/// inherited.
bool is_busy(const AttemptFailure& failure) {
  return output::result_of(failure.why) == output::CommandResult::busy;
}

/// Whether the holder is an ancestor of ours, on our host, that waits for us to end.
bool is_held_around_us(const Resource& resource, const Owner& owner, const std::string& our_host) {
  if (owner.host != our_host || owner.finished) return false;
  const auto pid = static_cast<pid_t>(owner.pid);
  if (owner.supervised) return proc::is_enclosing_run(pid, resource.key());
  return owner.pid_start > 0 && proc::is_ancestor(pid, owner.pid_start);
}

/// The text to append to "busy" after a wait: `; waited for 10s (--wait)`; empty if there was no
/// wait.
std::string end_of_wait_text(const WaitPolicy& policy) {
  if (!policy.wait || *policy.wait == Duration::zero()) return {};
  return fmt::format("; waited for {} (--wait)", format_duration(*policy.wait));
}

/// `; the guard is 1d, the --ttl`.
std::string guard_text(const ServerOptions& servers) {
  return fmt::format("; the guard is {}{}", format_duration(servers.restart_guard),
                     servers.guard_cause.empty() ? "" : ", the " + servers.guard_cause);
}

}  // namespace

output::Outcome outcome_of_wait(std::string_view command, const LockOptions& options,
                                const WaitFailure& failed, std::size_t servers) {
  if (failed.stop_request) return outcome_of_early_stop(command, options, *failed.stop_request);
  const AttemptFailure& failure = failed.failure;
  const output::CommandResult how = output::result_of(failure.why);
  std::string text = output::failure_text(failed.resource, failure, servers);
  const bool waits = options.wait.wait != Duration::zero();
  if (failure.why == AcquireDecision::held_around_us && waits && !options.insists_on_wait)
    text += "; with -w it waits";
  if (failure.why == AcquireDecision::guarded) text += guard_text(options.servers);
  if (is_busy(failure) && failure.why != AcquireDecision::queue_full)
    text += end_of_wait_text(options.wait);
  output::Outcome outcome = output::outcome_of(command, {failed.resource}, how, std::move(text));
  if (is_busy(failure) || how == output::CommandResult::superseded ||
      how == output::CommandResult::dismissed)
    outcome.exit_code = options.conflict_exit_code;
  outcome.holder = failure.holder;
  outcome.faults = failure.faults;
  outcome.superseded_by = failure.queue.superseded_by;
  outcome.dismissed_by = failure.queue.dismissed_by;
  return outcome;
}

void report_acquired(Session& session, const std::vector<Lease>& leases, Duration waited) {
  const ServerSet& servers = session.server_set();
  std::vector<ServerFault> faults = servers.faults();
  // A server whose answer is still to come may have granted it, too, but does not count.
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
    Session& session, std::vector<AcquireOrder> orders, WaitPolicy policy, bool insists_on_wait) {
  const Instant began = session.clock().now();
  const std::string host = orders.front().owner.host;
  const unsigned priority = orders.front().owner.priority;
  const auto& supersession = orders.front().supersession;
  const bool replaces = supersession && supersession->replaces;
  bool reported_held_around_us = false;
  std::optional<LeaseId> checked_lease;
  std::optional<WaitEvents> events;

  SetWaiter waiter(session.server_set(), std::move(orders), policy, session.interrupt());
  for (;;) {
    auto result = co_await waiter.next();
    if (result) co_return std::move(*result);
    WaitFailure& failure = result.error();

    // Before the verdict: to call our own lock busy would blame another process.
    const auto& holder = failure.failure.holder;
    const bool is_shown = is_busy(failure.failure) && holder && holder->owner;
    const bool is_new = is_shown && std::exchange(checked_lease, holder->id) != holder->id;
    if (is_new && !reported_held_around_us &&
        is_held_around_us(failure.resource, *holder->owner, host)) {
      if (!insists_on_wait) {
        if (!failure.final) co_await waiter.give_up();
        failure.failure.why = AcquireDecision::held_around_us;
        failure.final = true;
        co_return unexpected<WaitFailure>(std::move(failure));
      }
      reported_held_around_us = true;
      session.events().report(output::event::HeldAroundUs{failure.resource, *holder->owner});
    }

    if (failure.final) {
      if (failure.failure.why == AcquireDecision::superseded) {
        session.events().report(output::event::Superseded{
            failure.resource, failure.failure.queue.superseded_by, session.clock().now() - began});
      }
      co_return unexpected<WaitFailure>(std::move(failure));
    }

    // Created only now, because most locks are free, and then no timer is needed.
    if (!events) events.emplace(session, priority, replaces);
    events->report(failure);
  }
}

}  // namespace redlock::commands
