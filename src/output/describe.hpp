#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "core/decision.hpp"
#include "core/lease.hpp"
#include "core/vote.hpp"
#include "engine/attempt.hpp"
#include "engine/lease_keeper.hpp"

namespace redlock::output {

/// Results and events as clauses for people. Pure except for the time of day. Everything from
/// elsewhere is returned escaped for the terminal.

/// The key as it is shown.
std::string key_text(const Resource& resource);

/// `asked to stop by alice@web1 ("roll back")`.
std::string asked_text(const StopRequest& request);

/// `alice@web1 broke it with `release --force` ("roll back")`: the breaker's note is the reason.
std::string broke_text(const Owner& breaker);

/// `stopped at the request of alice@web1 ("roll back")`.
std::string stopped_text(const StopRequest& request);

/// Several keys, separated by commas.
std::string keys_text(const std::vector<Resource>& resources);

/// A time of the wall clock in local time: `08:12:01`, and before or after today
/// `2026-11-21 08:12:01`.
std::string moment_text(Milliseconds moment, Milliseconds now);

/// `held by alice@web1 (run pid 4711: deploy.sh), "release 1.2", renewed, for 12s`, `held by a
/// foreign client, expires in 18s unless it is renewed`, or, when no command runs under it any
/// more, `kept until 03:01:00 by --min-hold of alice@web1 (deploy.sh); finished 13s ago with 0`.
/// What is unknown is left out. The time of day is local time.
std::string held_text(const Holder& holder);

/// Whether a lease is renewed, as far as its holder's record tells.
enum class Renewal {
  none,
  renewed,
  overdue,  ///< it should have been renewed by now
  unknown,
};
Renewal renewal_of(const Holder& holder);

/// `-k demo` as a user would type it, `--key=-n` where it must be.
std::string key_option(const Resource& resource);

/// `a key of type hash with 3 elements, without expiry`: what a key is that is no lease of ours.
std::string foreign_key_text(const ForeignKey& key);

/// `redis://a:6379: no answer within 50ms; redis://b:6379: wrong password`, or an empty string.
std::string faults_text(const std::vector<ServerFault>& faults);

/// `1 of 3 servers not voting; 1 tolerated: redis://b:6379: timeout after 50ms`, or an empty string
/// when all vote.
std::string missing_votes_text(const std::vector<ServerFault>& faults, std::size_t servers);

/// Why a process waits for itself, and how to hand the lease on to it: its holder is an ancestor of
/// it.
std::string held_around_us_text(const Owner& owner);

/// Why an attempt or a wait failed, to follow `KEY: `.
std::string failure_text(const Resource& resource, const AttemptFailure& failure,
                         std::size_t servers);

/// Why a lease was lost.
std::string not_ours_text(const std::optional<NotOurs>& not_ours);

/// How a lease ended while a command ran under it.
std::string ended_text(const LeaseEnded& ended);

/// Why a lease was not renewed although servers may have answered: `this machine gave redlock-cli
/// no CPU for 1.9s`.
std::string delay_text(Duration length, bool suspended);

/// `UNSAFE: …`: a command may have run without its lock. `dead`: every process of it was seen dead,
/// `late` after the end of the lease. Otherwise `left` are the processes that could not be killed,
/// as far as they are known.
std::string unsafe_text(bool dead, const std::vector<pid_t>& left, Duration late);

/// A key's state for `status`: `free`, `held by …`, …
std::string inspection_text(const Inspection& inspection);

/// The processes that share the lock and those that wait for it, one line each.
std::vector<std::string> parties_lines(const LockParties& parties);

/// `3h ago on db2 (12m, exit 0)`.
std::string past_run_text(const PastRun& run);

/// The last run, and the last success where that was another one, one line each.
std::vector<std::string> runs_lines(const LastRuns& runs,
                                    const std::function<std::string(Duration ago)>& moment);

/// What `status --runs` says: a line for each run, `3h ago, at 03:00:01: alice@db2 (backup) (waited
/// 0ms, held 12m, exit 0)`; and what keeps it from telling all.
std::vector<std::string> kept_runs_lines(const std::vector<PastRun>& kept, const LastRuns& runs,
                                         const std::function<std::string(Duration ago)>& moment);

/// `skipped at least 3 times since 03:00:01 (busy)`.
std::string skips_text(const Skips& skips, const std::function<std::string(Duration ago)>& moment);

/// What `status --max-age` says: `last success 3h ago on db2 (12m, exit 0), within 26h`. `recent`:
/// whether it is within.
std::string check_text(const LastRuns& runs, Duration max_age, bool recent);

/// One server's answer in `status`.
std::string vote_text(const InspectVote& vote);

}  // namespace redlock::output
