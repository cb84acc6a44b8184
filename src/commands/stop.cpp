#include "commands/stop.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/validity.hpp"
#include "engine/dismissal.hpp"
#include "engine/inspect.hpp"
#include "engine/round.hpp"
#include "output/failure_text.hpp"
#include "output/holder_text.hpp"
#include "output/outcome.hpp"
#include "output/outcome_json.hpp"
#include "output/request_text.hpp"
#include "output/text_parts.hpp"
#include "support/duration.hpp"

namespace redlock::commands {
namespace {

using output::CommandResult;

/// The request is repeated to find out whether the lease is gone: once per second, or more often in
/// a short wait and while the ttl is short.
constexpr Milliseconds max_ask_interval{1000};
constexpr int min_asks_per_wait = 20;
constexpr int min_asks_per_ttl = 4;

/// One `stop`, from reading the lock to the end of the wait.
class Stopping {
 public:
  /// `session` and `options` must outlive this object.
  Stopping(Session& session, const StopOptions& options) : session_(session), options_(options) {}

  asio::awaitable<ExitAs> run() {
    output::Outcome outcome;
    if (options_.target == StopTarget::holder) {
      outcome = co_await stop();
    } else {
      outcome = co_await dismiss();
    }
    const std::string line =
        fmt::format("{}: {}", output::key_text(options_.resource), outcome.message);
    outcome.exit_code == 0 ? session_.console().notice(line) : session_.console().error(line);
    if (session_.json()) print_result(output::outcome_json(outcome) + "\n");
    co_await session_.server_set().close(CloseMode::immediate);
    co_return ExitAs{outcome.exit_code};
  }

 private:
  /// Why the holder would not be asked to stop, so that no waiter is sent away either.
  asio::awaitable<std::optional<output::Outcome>> refusal() {
    const AskRequest question{options_.resource, std::nullopt, options_.slot};
    votes_ = co_await read_holder(session_.server_set(), question);
    const Inspection found = summarize(votes_);
    if (!found.holder) co_return std::nullopt;
    co_return mismatch(*found.holder);
  }

  asio::awaitable<output::Outcome> dismiss() {
    if (options_.target == StopTarget::all) {
      const std::optional<output::Outcome> refused = co_await refusal();
      if (refused) co_return *refused;
    }
    const Dismissal dismissal =
        co_await dismiss_waiters(session_.server_set(), options_.resource, options_.request);
    const auto outcome_for = [&](CommandResult result, std::string message) {
      output::Outcome outcome =
          output::outcome_of("stop", {options_.resource}, result, std::move(message));
      outcome.faults = dismissal.faults;
      return outcome;
    };
    if (!dismissal.confirmed) {
      const std::size_t servers = session_.server_set().size();
      co_return outcome_for(output::result_for_faults(dismissal.faults, servers),
                            "no quorum confirmed that those who wait are sent away; " +
                                output::faults_text(dismissal.faults));
    }
    const std::string text = output::sent_away_text(dismissal.waiters);
    const std::string key = output::key_text(options_.resource);
    session_.console().audit(
        fmt::format("{}: {}, by {}", key, text, output::request_text(options_.request)));
    output::Outcome outcome = outcome_for(CommandResult::dismissed, text);
    outcome.exit_code = to_int(ExitCode::done);
    if (options_.target == StopTarget::all) {
      session_.console().notice(fmt::format("{}: {}", key, text));
      outcome = co_await stop();
      if (outcome.faults.empty()) outcome.faults = dismissal.faults;
    }
    outcome.sent_away = dismissal.waiters;
    co_return outcome;
  }

  asio::awaitable<output::Outcome> stop() {
    const AskRequest question{options_.resource, std::nullopt, options_.slot};
    votes_ = co_await read_holder(session_.server_set(), question);
    const Inspection found = summarize(votes_);
    if (found.state == InspectState::unavailable) co_return unavailable("no quorum answered");
    if (found.state == InspectState::free) {
      co_return free(options_.slot ? fmt::format("nothing to stop: slot {} is free", *options_.slot)
                                   : "nothing to stop: the lock is free");
    }
    const Holder holder = *found.holder;
    if (const auto refused = mismatch(holder)) co_return *refused;
    if (is_gone(votes_, holder.id)) {
      const bool is_kept = holder.owner && holder.owner->finished;
      co_return free("nothing to stop: " +
                     (is_kept ? output::held_text(holder) : std::string("no quorum has it")));
    }
    if (const std::string why = obstacle(holder); !why.empty())
      co_return outcome_of(CommandResult::busy, why, holder);
    co_return co_await ask(holder);
  }

  /// The outcome if this is not the holder that is meant.
  [[nodiscard]] std::optional<output::Outcome> mismatch(const Holder& holder) const {
    if (const std::string why = slot_problem(holder); !why.empty())
      return outcome_of(CommandResult::usage, why, holder);
    if (!options_.only_if || holder.fence == options_.only_if) return std::nullopt;
    return outcome_of(CommandResult::lost,
                      "left alone, it has another fence: " + output::held_text(holder), holder);
  }

  /// Why neither the holder nor one of its slots can be asked; empty if one can.
  [[nodiscard]] std::string slot_problem(const Holder& holder) const {
    const std::string held = output::held_text(holder);
    if (const char* problem = output::slot_mismatch(holder, options_.slot))
      return fmt::format("{}: {}", problem, held);
    if (!holder.shared || options_.slot) return {};
    return "a process that shares a lock cannot be asked to stop; stop it on its host: " + held;
  }

  /// Why the holder cannot be asked to stop, and what to do instead; empty if it can be asked.
  [[nodiscard]] std::string obstacle(const Holder& holder) const {
    const std::string key = output::key_option(options_.resource);
    const std::string held = "cannot be asked to stop: " + output::held_text(holder);
    if (holder.foreign) {
      return fmt::format("{}; stop it where it runs; {}", held,
                         output::foreign_advice(options_.resource, output::is_like_lock(holder)));
    }
    if (!holder.owner) {
      return fmt::format(
          "{}; stop it where it runs; `redlock-cli release {} --force` breaks the lock under it",
          held, key);
    }
    const Owner& owner = *holder.owner;
    const bool has_stoppable_user = std::ranges::any_of(
        holder.users, [](const ShownUser& user) { return user.owner && user.owner->stoppable; });
    // The request would reach a run with --on-lost warn, too.
    if (owner.stoppable || (has_stoppable_user && !owner.supervised)) return {};
    if (owner.hold_for && holder.users.empty()) {
      return fmt::format("nothing runs under it: {}; `redlock-cli release {}{}` lifts the hold",
                         output::held_text(holder), key, output::slot_option(options_.slot));
    }
    const std::string breaking =
        fmt::format("`redlock-cli release {} --force` breaks the lock under it{}", key,
                    holder.shared ? ", and under all others that share it" : "");
    if (is_held_for_script(owner)) {
      return fmt::format(
          "{}; {}, so there is no command to stop: `redlock-cli release` frees it, with its lease "
          "(--token-file or REDLOCK_LEASE); without it, {}",
          held, owner.detached ? "it is detached" : "it was acquired by hand", breaking);
    }
    return fmt::format("{}; it runs with --on-lost warn: stop it on its host; {}", held, breaking);
  }

  /// Whose command stops: the holder's, or those that run under its lease.
  [[nodiscard]] static std::string stoppable_text(const Holder& holder) {
    if (holder.owner->stoppable) return output::owner_text(*holder.owner);
    return fmt::format("{}, under the lease of {},", output::users_text(holder.users),
                       output::person_text(holder.owner->user, holder.owner->host));
  }

  asio::awaitable<output::Outcome> ask(Holder holder) {
    const AskRequest question{options_.resource, holder.id, std::nullopt, options_.request,
                              /*exclusive=*/!options_.slot};
    Duration ttl = holder.owner->renewed_for.value_or(default_ttl);
    for (const ShownUser& user : holder.users)
      ttl = std::max(ttl, user.owner ? user.owner->renewed_for.value_or(default_ttl) : ttl);
    const Duration wait = options_.wait.value_or(ttl);
    const Instant began = now();
    const Instant until = later(began, wait);
    const Duration interval =
        std::min<Duration>({max_ask_interval, wait / min_asks_per_wait, ttl / min_asks_per_ttl});
    session_.console().notice(fmt::format(
        "{}: asking {} to stop{}", output::key_text(options_.resource), stoppable_text(holder),
        wait > Duration::zero() ? "; waiting for up to " + format_duration(wait) : ""));
    session_.console().audit(fmt::format("{}: {}, which is {}", output::key_text(options_.resource),
                                         output::asked_text(options_.request),
                                         output::held_text(holder)));
    bool is_asked = false;
    const bool is_stoppable = holder.owner->stoppable;
    for (;;) {
      votes_ = co_await ask_to_stop(session_.server_set(), question);
      if (const Holder* const shown = shown_holder(holder.id)) {
        holder = *shown;
        is_asked = is_asked || (holder.owner && holder.owner->stop_request);
      }
      if (is_gone(votes_, holder.id)) {
        const Duration took = now() - began;
        const std::optional<PastRun> run = co_await run_of(holder.id);
        if (!was_released(holder, run)) co_return vanished(holder, took);
        co_return is_asked ? stopped(holder, run, took) : gone();
      }
      if (is_asked && !is_stoppable && !may_have_users(votes_, holder.id))
        co_return unused(holder, now() - began);
      const bool is_known = summarize(votes_).state != InspectState::unavailable;
      const bool is_final = !is_known && failure() != CommandResult::unavailable;
      if (is_final || now() >= until) {
        const std::string stands =
            is_asked ? "; the request stands" : "; no server has the request";
        if (!is_known) co_return unavailable("no quorum answered" + stands);
        co_return outcome_of(
            CommandResult::busy,
            fmt::format("not stopped after {}: {}{}", format_duration(now() - began),
                        output::held_text(holder), stands),
            holder);
      }
      co_await sleep_until(session_.clock(), std::min(until, now() + interval));
    }
  }

  /// What a server shows of the lease, preferably one that has a stop request for it, ours or an
  /// earlier one; nullptr: no server shows the lease.
  [[nodiscard]] const Holder* shown_holder(const LeaseId& id) const {
    const Holder* shown = nullptr;
    for (const InspectVote& vote : votes_) {
      const auto* taken = std::get_if<Taken>(&vote);
      if (taken == nullptr || taken->holder.id != id) continue;
      const bool is_asked = taken->holder.owner && taken->holder.owner->stop_request;
      if (shown == nullptr || is_asked) shown = &taken->holder;
    }
    return shown;
  }

  /// The run that ended with the lease; nullopt if none is recorded.
  asio::awaitable<std::optional<PastRun>> run_of(const LeaseId& id) {
    const std::vector<InspectVote> votes =
        co_await inspect(session_.server_set(), options_.resource, RunsTold::kept);
    for (const LastRuns& runs : summarize(votes).runs_by_server) {
      const auto run = std::ranges::find_if(
          runs.kept, [&](const PastRun& kept) { return kept.lease == id && kept.ended; });
      if (run != runs.kept.end()) co_return *run;
    }
    co_return std::nullopt;
  }

  /// Whether a lease that is gone was released, so that what ran under it has ended. One server is
  /// enough: only a release leaves these signs.
  [[nodiscard]] bool was_released(const Holder& holder, const std::optional<PastRun>& run) const {
    if (holder.owner && holder.owner->finished) return true;
    for (const InspectVote& vote : votes_) {
      const auto* free = std::get_if<Free>(&vote);
      const auto* taken = std::get_if<Taken>(&vote);
      if ((free != nullptr && free->ended) || (taken != nullptr && taken->ended)) return true;
    }
    // A lease that was released before it was asked leaves no other sign than its run. That is of
    // its keeper, and says nothing of others that used it.
    return holder.users.empty() && run;
  }

  /// `; now it is held by …`; empty if no other process has acquired the lock by now.
  [[nodiscard]] std::string successor_text() const {
    const Inspection found = summarize(votes_);
    return found.state == InspectState::held ? "; now it is " + output::held_text(*found.holder)
                                             : std::string();
  }

  [[nodiscard]] output::Outcome stopped(const Holder& holder, const std::optional<PastRun>& run,
                                        Duration took) const {
    const bool is_kept = holder.owner && holder.owner->finished;
    const bool is_other_end = run && run->result != output::word_of(CommandResult::stopped);
    return outcome_of(CommandResult::stopped,
                      fmt::format("{}; {} after {}{}",
                                  is_other_end ? "ended before the request reached it" : "stopped",
                                  is_kept ? "its command ended" : "released", format_duration(took),
                                  successor_text()),
                      holder);
  }

  /// The lease was broken, deleted or lost, or it expired because its guards were killed.
  [[nodiscard]] output::Outcome vanished(const Holder& holder, Duration took) const {
    return outcome_of(
        CommandResult::unconfirmed,
        fmt::format("gone after {}, but not released: its command may still run; it "
                    "was {}{}",
                    format_duration(took), output::held_text(holder), successor_text()),
        holder);
  }

  /// What used the lease has stopped, but no process releases the lease because of that.
  [[nodiscard]] output::Outcome unused(const Holder& holder, Duration took) const {
    const bool is_hold = holder.owner && holder.owner->hold_for;
    return outcome_of(
        CommandResult::busy,
        fmt::format(
            "what ran under it has stopped within {}, but it is still {}; `redlock-cli release "
            "{}{}{}",
            format_duration(took), output::held_text(holder), output::key_option(options_.resource),
            output::slot_option(options_.slot),
            is_hold ? "` lifts the hold" : " --force` breaks the lock"),
        holder);
  }

  [[nodiscard]] output::Outcome gone() const {
    return free("nothing to stop: the holder was gone before the request" + successor_text());
  }

  [[nodiscard]] output::Outcome free(std::string message) const {
    return outcome_of(CommandResult::free, std::move(message), std::nullopt);
  }

  [[nodiscard]] output::Outcome unavailable(const std::string& message) const {
    return outcome_of(failure(), message + "; " + output::faults_text(faults()), std::nullopt);
  }

  [[nodiscard]] output::Outcome outcome_of(CommandResult result, std::string message,
                                           std::optional<Holder> holder) const {
    output::Outcome outcome =
        output::outcome_of("stop", {options_.resource}, result, std::move(message));
    outcome.holder = std::move(holder);
    outcome.faults = faults();
    return outcome;
  }

  [[nodiscard]] CommandResult failure() const {
    return output::result_for_faults(faults(), votes_.size());
  }

  [[nodiscard]] std::vector<ServerFault> faults() const {
    return faults_among(session_.server_set(), [&](std::size_t i) { return &votes_[i]; });
  }

  [[nodiscard]] Instant now() const { return session_.clock().now(); }

  Session& session_;
  const StopOptions& options_;
  std::vector<InspectVote> votes_;  ///< the answers of the last round
};

}  // namespace

ExitAs stop(Session& session, const StopOptions& options) {
  Stopping stopping(session, options);
  return session.run(stopping.run());
}

}  // namespace redlock::commands
