#include "core/lease.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "core/decision.hpp"

namespace redlock {

void LeaseClaims::note(std::size_t server, Instant t0, std::optional<Instant> deadline,
                       std::string_view run_id) {
  auto& last = last_.at(server);
  if (!last || last->t0 <= t0) last = Claim{t0, deadline, std::string(run_id)};
}

std::optional<Instant> LeaseClaims::deadline() const {
  std::vector<Instant> deadlines;
  // A server that is configured twice may answer as one entry in one round, and as the other in the
  // next.
  std::set<std::string_view> counted;
  for (const auto& claim : last_) {
    if (!claim || !claim->deadline) continue;
    if (claim->run_id.empty() || counted.insert(claim->run_id).second)
      deadlines.push_back(*claim->deadline);
  }
  const std::size_t quorum = quorum_of(last_.size());
  if (deadlines.size() < quorum) return std::nullopt;
  std::ranges::sort(deadlines, std::greater());
  return deadlines[quorum - 1];
}

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
