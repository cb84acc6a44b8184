#include "core/lease.hpp"

#include <algorithm>

namespace redlock {

void LeaseLife::confirm(Instant t0, Instant deadline) {
  // A round that began after the deadline proves that the lease had expired, whether or not the
  // state was read in between.
  if (state(t0) != LeaseState::held) return;
  deadline_ = std::max(deadline_, deadline);
}

void LeaseLife::lose() {
  if (state_ == LeaseState::held) state_ = LeaseState::lost;
}

LeaseState LeaseLife::state(Instant now) {
  if (state_ == LeaseState::held && now >= deadline_) state_ = LeaseState::expired;
  return state_;
}

}  // namespace redlock
