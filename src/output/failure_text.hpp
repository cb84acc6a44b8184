#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/vote.hpp"
#include "engine/attempt.hpp"
#include "engine/lease_keeper.hpp"
#include "engine/server_set.hpp"

namespace redlock::output {

/// What failed, as clauses for people: an attempt, a server, a lease, the end of a command. The
/// functions are pure, except that some read the wall clock. Text from servers, keys and records is
/// returned escaped for the terminal.

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

/// Why an extension that was not confirmed failed.
std::string failure_text(const ExtendResult& result);

/// How a lease ended while a command ran under it.
std::string ended_text(const LeaseEnded& ended);

/// Why this process renewed a lease too late, although the servers may have been reachable: `this
/// machine gave redlock-cli no CPU for 1.9s`.
std::string delay_text(Duration length, bool suspended);

/// `UNSAFE: …`: the command may have run without its lock. If `dead`, all of its processes are
/// known to be dead, the last one `late` after the lease could expire. Otherwise `left` lists the
/// known processes that could not be killed.
std::string unsafe_text(bool dead, const std::vector<pid_t>& left, Duration late);

}  // namespace redlock::output
