#include "core/lease.hpp"

#include <algorithm>

#include "core/validity.hpp"

namespace redlock {

LeaseLife::LeaseLife(Ttl ttl, Instant t0)
    : deadline_(redlock::deadline(t0, ttl)), next_extend_(t0 + extend_interval(ttl)) {}

void LeaseLife::confirm(Instant t0, Ttl ttl) {
  // A round that began after the deadline proves that the lease had expired, whether or not the
  // state was read in between.
  if (state(t0) != LeaseState::held) return;
  deadline_ = std::max(deadline_, redlock::deadline(t0, ttl));
  next_extend_ = t0 + extend_interval(ttl);
}

void LeaseLife::lose() {
  if (state_ == LeaseState::held) state_ = LeaseState::lost;
}

LeaseState LeaseLife::state(Instant now) {
  if (state_ == LeaseState::held && now >= deadline_) state_ = LeaseState::expired;
  return state_;
}

}  // namespace redlock
