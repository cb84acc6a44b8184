#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"
#include "core/vote.hpp"
#include "support/boot_clock.hpp"

namespace redlock {

/// What this process has to do for a lease.
enum class Keeping {
  own,       ///< we acquired it: we extend it and release it
  used,      ///< another process acquired it: we extend it, but only end our use of it
  inherited  ///< another process keeps it, and we only hand it on: we poll whether it is still
             ///< valid
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
  /// What the servers store about it, as of the grant; nullopt: unknown until a server reports it.
  std::optional<Provenance> provenance{};
  /// The success because of which AcquireOrder::once_per forbids another run. Servers that forgot
  /// it learn of it when the lease is released.
  std::optional<RunRecord> fresh{};
  /// As which user of the lease the servers know us; nullopt: we are its keeper, or acquired by
  /// hand below a lease that was handed over.
  std::optional<LeaseUser> user{};
  /// The stop request that a lease already had when we came to use it.
  std::optional<StopRequest> stop_request{};
  /// Whether an ancestor that works under the lease, too, still lives: it obeys stop requests, and
  /// stops us with its process tree. Null: there is none.
  std::function<bool()> guard_lives{};
  /// With --replace: the place of its keeper, which decides whether a stop request is of a newer
  /// run and so is obeyed. nullopt: only stop requests by hand are obeyed.
  std::optional<Place> place{};
};

/// How a lease is released.
struct ReleaseTerms {
  ReleaseTerms() = default;  // no aggregate: it is a temporary where a release is awaited

  Duration expire_in{};             ///< if more than zero, it stays and expires after this time
  std::optional<Owner> finished{};  ///< the owner record while it stays
  std::optional<RunRecord> run{};   ///< the run that ends with it, for the servers to remember; its
                                    ///< fence is filled in
  bool may_have_users = false;      ///< leave it to other processes that use it, if there are any
  std::optional<StopRequest> stop_users{};  ///< ask those to stop
};

enum class LeaseState { held, lost, expired };

/// What each server said last about a lease that is extended round after round (PROTOCOL R3, R4).
/// Pure. An answer counts whenever it comes, but only until a request that was asked later is
/// answered.
class LeaseClaims {
 public:
  explicit LeaseClaims(std::size_t servers) : last_(servers) {}

  /// A server answered the request that was asked at `t0`: it has the lease for as long as the
  /// `deadline`, or not at all (nullopt). `run_id` identifies its process; empty: not known.
  void note(std::size_t server, Instant t0, std::optional<Instant> deadline,
            std::string_view run_id = {});

  /// Until when a quorum has the lease: the quorum-th largest deadline, of each process once.
  /// nullopt if no quorum has it.
  [[nodiscard]] std::optional<Instant> deadline() const;

 private:
  struct Claim {
    Instant t0;
    std::optional<Instant> deadline;
    std::string run_id;
  };
  std::vector<std::optional<Claim>> last_;
};

/// The state of a lease from its grant to its end. Pure: takes instants, returns states. A held
/// lease becomes `lost` when a quorum reports that it is not ours, or `expired` when the deadline
/// passes without an extension. Both are final.
class LeaseLife {
 public:
  explicit LeaseLife(Instant deadline) : deadline_(deadline) {}

  /// A round that began at `t0` confirmed the lease on a quorum until `deadline`. Moves the
  /// deadline forward, never back. Has no effect once the lease has ended: it is never restored.
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
