#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/decision.hpp"
#include "core/vote.hpp"
#include "engine/attempt.hpp"
#include "engine/lease_keeper.hpp"
#include "output/outcome.hpp"

namespace redlock::output {

/// Results and events as clauses for people. The functions are pure, except that some read the wall
/// clock. Text from servers, keys and records is returned escaped for the terminal.

/// `alice@web1`; `?` for what is not known.
std::string person_text(const std::string& user, const std::string& host);

/// `1st`, `2nd`, `3rd`, `4th`, `11th`, `21st`.
std::string ordinal(std::size_t number);

/// `no command runs yet: it waits for deploy, 2nd in queue`: of a holder with several keys.
std::string awaited_text(const AwaitedLock& lock);

/// The key, escaped for the terminal.
std::string key_text(const Resource& resource);

/// `alice@db2 (backup), "release 1.2"`: the former holder of a lock. Without the pid: the process
/// has ended, and its pid may belong to another one.
std::string former_owner_text(const Owner& owner);

/// The end of a hold, as local time: `09:00`, with the date if it is not today.
std::string end_text(Duration remaining);

/// What may become of a hold when these servers, which persist nothing, restart; empty if a quorum
/// of others has it.
std::string forgetful_text(const std::vector<std::string>& forgetful, std::size_t servers);

/// `run pid 4711 on web1: deploy.sh, pid 12 on web2`.
std::string users_text(const std::vector<ShownUser>& users);

/// `asked to stop by alice@web1 ("roll back")`, or `asked to stop for a newer run of …`.
std::string asked_text(const StopRequest& request);

/// `, priority 5`; empty for 0, that of most waiters.
std::string priority_text(unsigned priority);

/// `alice@web1 ("roll back")`.
std::string request_text(const StopRequest& request);

/// `2 waiters sent away; 1 not reached, which gives up when it runs again: alice@web1 (run pid 4)`.
std::string sent_away_text(const SentAway& waiters);

/// `alice@web1 broke it with `release --force` ("roll back")`: the breaker's note is the reason.
std::string broke_text(const Owner& breaker);

/// `stopped at the request of alice@web1 ("roll back")`, or `stopped for a newer run of …`.
std::string stopped_text(const StopRequest& request);

/// Several keys, separated by commas.
std::string keys_text(const std::vector<Resource>& resources);

/// A wall-clock time as local time: `08:12:01`, with the date if it is not today:
/// `2026-11-21 08:12:01`.
std::string moment_text(Milliseconds moment, Milliseconds now);

/// `held by alice@web1 (run pid 4711: deploy.sh), "release 1.2", for 12s, last renewed 3s ago`,
/// `held by a foreign client, expires in 18s unless it is renewed`, or, once its command has ended,
/// `kept until 03:01:00 by --min-hold of alice@web1 (deploy.sh); ended 13s ago, exit status 0`; a
/// hold is `on hold until 09:00 by ops@laptop: database move`. Unknown parts are left out. The time
/// of day is local time.
std::string held_text(const Holder& holder);

/// Whether the holder renews its lease, according to its owner record and the remaining time.
enum class Renewal {
  none,
  renewed,
  overdue,  ///< the holder renews it, but has missed the last renewal
  unknown,
};
Renewal renewal_of(const Holder& holder);

/// How long ago the holder renewed its lease; nullopt if it does not, or that is not known.
std::optional<Duration> since_renewal(const Holder& holder);

/// The option that names the key, as a user would type it: `-k demo`, or `--key=-n` for a key that
/// looks like an option.
std::string key_option(const Resource& resource);

/// ` --slot phone2`, to follow the key; empty without a slot.
std::string slot_option(const std::optional<std::string>& slot);

/// Describes a key that redlock-cli did not write: `a key of type hash with 3 elements, without
/// expiry`.
std::string foreign_key_text(const ForeignKey& key);

/// `redis://a:6379: no answer within 50ms; redis://b:6379: wrong password`; empty without faults.
std::string faults_text(const std::vector<ServerFault>& faults);

/// `1 of 3 servers not voting; 1 tolerated: redis://b:6379: timeout after 50ms`, or an empty string
/// when all vote.
std::string missing_votes_text(const std::vector<ServerFault>& faults, std::size_t servers);

/// Explains a wait that cannot end: the holder is an ancestor of this process and waits for it. The
/// text names the variable that passes the holder's lease on.
std::string held_around_us_text(const Owner& owner);

/// Why an attempt or a wait failed, as the text after `KEY: `.
std::string failure_text(const Resource& resource, const AttemptFailure& failure,
                         std::size_t servers);

/// Why a lease was lost.
std::string not_ours_text(const std::optional<NotOurs>& not_ours);

/// How a lease ended while a command ran under it.
std::string ended_text(const LeaseEnded& ended);

/// Why this process renewed a lease too late, although the servers may have been reachable: `this
/// machine gave redlock-cli no CPU for 1.9s`.
std::string delay_text(Duration length, bool suspended);

/// `UNSAFE: …`: the command may have run without its lock. If `dead`, all of its processes are
/// known to be dead, the last one `late` after the lease could expire. Otherwise `left` lists the
/// known processes that could not be killed.
std::string unsafe_text(bool dead, const std::vector<pid_t>& left, Duration late);

/// A lock's state for `status`: `free`, `held by …`, `unknown: …`.
std::string inspection_text(const Inspection& inspection);

/// Counts the taken slots of a lock that is shared in slots; nullopt for any other lock. `slots` is
/// the number of slots, where it is given; otherwise the number comes from the holders' records.
std::optional<TakenSlots> taken_slots(const LockParties& parties, std::optional<std::size_t> slots);

/// The processes that share the lock and those that wait for it, one line each.
std::vector<std::string> parties_lines(const LockParties& parties);

/// One server's answer in `status`.
std::string vote_text(const InspectVote& vote);

}  // namespace redlock::output
