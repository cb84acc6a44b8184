#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/vote.hpp"

namespace redlock::output {

/// Who holds a lock, as clauses for people. The functions are pure, except that some read the wall
/// clock. Text from servers, keys and records is returned escaped for the terminal.

/// `held by alice@web1 (run pid 4711: deploy.sh), "release 1.2", for 12s, last renewed 3s ago`,
/// `held by a foreign client, expires in 18s unless it is renewed`, or, once its command has ended,
/// `kept until 03:01:00 by --min-hold of alice@web1 (deploy.sh); ended 13s ago, exit status 0`; a
/// hold is `on hold until 09:00 by ops@laptop: database move`. Unknown parts are left out. The time
/// of day is local time.
std::string held_text(const Holder& holder);

/// The same, but of a lock that is shared in slots `2 of 4 slots taken, the latest by …`.
std::string held_text(const Holder& holder, const TakenSlots& slots);

/// Why --slot, or its absence, does not match the lock of this holder; nullptr: it does, or that is
/// not known.
const char* slot_mismatch(const Holder& holder, const std::optional<std::string>& slot);

/// Which process holds the lock, for how long, and when it expires.
std::string holder_text(const Holder& holder);

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

/// `no command runs yet: it waits for deploy, 2nd in queue`: of a holder with several keys.
std::string awaited_text(const AwaitedLock& lock);

/// `run pid 4711 on web1: deploy.sh, pid 12 on web2`.
std::string users_text(const std::vector<ShownUser>& users);

/// What may become of a hold when these servers, which persist nothing, restart; empty if a quorum
/// of others has it.
std::string forgetful_text(const std::vector<std::string>& forgetful, std::size_t servers);

/// What to do about a key that redlock-cli did not write: only a string with an expiry looks like a
/// lock, so only then the text names the options that break it.
std::string foreign_advice(const Resource& resource, bool is_like_lock);
bool is_like_lock(const Holder& foreign);

/// Describes a key that redlock-cli did not write: `a key of type hash with 3 elements, without
/// expiry`.
std::string foreign_key_text(const ForeignKey& key);

}  // namespace redlock::output
