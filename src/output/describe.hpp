#pragma once

#include <string>
#include <vector>

#include "core/decision.hpp"
#include "core/lease.hpp"
#include "core/vote.hpp"
#include "engine/attempt.hpp"
#include "engine/lease_keeper.hpp"

namespace redlock::output {

/// Results and events as clauses for people. Pure; everything from elsewhere comes out escaped for the terminal.

/// The key as it is shown.
std::string key_text(const Resource& resource);

/// Several of them, with commas between.
std::string keys_text(const std::vector<Resource>& resources);

/// `alice@web1, pid 4711 (deploy.sh), "release 1.2", for 12s, 18s left` or `a foreign client, 18s left`. What is unknown is left out.
std::string holder_text(const Holder& holder);

/// `redis://a:6379: no answer within 50ms; redis://b:6379: wrong password`, or an empty string.
std::string faults_text(const std::vector<ServerFault>& faults);

/// Why an attempt or a wait failed, as what follows `KEY: `.
std::string failure_text(const AttemptFailure& failure, std::size_t servers);

/// Why a lease is not ours any more.
std::string not_ours_text(const std::optional<NotOurs>& not_ours);

/// How a lease ended under a running command.
std::string ended_text(const LeaseEnded& ended);

/// Why a lease was not renewed although servers may have answered: `this machine gave redlock-cli no CPU for 1.9s`.
std::string delay_text(Duration length, bool suspended);

/// `UNSAFE: …`: a command may have run without its lock. `dead`: all of it was seen dead, `late` after the end of the lease; else
/// `left` are the processes that could not be killed, as far as they are known.
std::string unsafe_text(bool dead, const std::vector<long>& left, Duration late);

/// A key's state for `status`: `free`, `held by …`, …
std::string inspection_text(const Inspection& inspection);

/// Who shares the lock and who waits for it, a line for each.
std::vector<std::string> company_lines(const Company& company);

/// One server's word in `status`.
std::string vote_text(const InspectVote& vote);

}  // namespace redlock::output
