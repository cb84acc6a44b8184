#pragma once

#include "core/types.hpp"
#include "core/vote.hpp"
#include "support/boot_clock.hpp"

namespace redlock {

/// Our duties to a lease.
enum class Keeping {
  own,          ///< we acquired it: we extend it and release it
  handed_over,  ///< another process left it to us: we extend it, but do not release it
  inherited,    ///< another process keeps it: we only poll whether it still stands
};

/// A granted lock: its proof, and how long we may rely on it.
struct Lease {
  Resource resource;
  Token token;
  LeaseId id;
  Fence fence;
  Ttl ttl;
  Instant deadline;  ///< t0 + ttl - drift of the last confirmed round; moves forward only
  Keeping keeping = Keeping::own;
  Hold hold{};
  /// The success that closes the period of AcquireOrder::once_per. Servers that forgot it learn of
  /// it when the lease is released.
  std::optional<RunRecord> fresh{};
  /// Of a lease that was handed over: it had this stop request by then.
  std::optional<StopRequest> stop_request{};
  /// With --replace: a stop request of a newer run is obeyed. Nothing: those by hand alone.
  std::optional<Place> place{};
};

enum class LeaseState { held, lost, expired };

/// The life of a lease between its grant and its end. Pure: takes instants, returns states.
/// held -> lost (a quorum says it is not ours) or held -> expired (the deadline passed without an
/// extension); both are final.
class LeaseLife {
 public:
  explicit LeaseLife(Instant deadline) : deadline_(deadline) {}

  /// A round that began at `t0` confirmed it on a quorum until `deadline`. Moves the deadline
  /// forward, never back; ignored once the lease has ended (it is never restored).
  void confirm(Instant t0, Instant deadline);

  /// A round found that no quorum still has our lease.
  void lose();

  /// The state at `now`; final once it is expired or lost.
  LeaseState state(Instant now);

  [[nodiscard]] Instant deadline() const noexcept { return deadline_; }

 private:
  LeaseState state_ = LeaseState::held;
  Instant deadline_;
};

}  // namespace redlock
