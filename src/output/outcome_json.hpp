#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/lease.hpp"
#include "output/outcome.hpp"
#include "output/run_state.hpp"

namespace redlock::output {

/// The fields of every result: {"command","key","result","exit_code"} and, where there is one,
/// "message". A result for several keys has "keys":[{"key"},…] instead of "key".
std::string outcome_json(const Outcome& outcome);

/// acquire: the outcome with "token", "fence", "shared", with --slots "slot" and "slots" or
/// "slot_name" and "slot_names", "lease"
/// (the handle), "ttl_ms", "acquired_at" and "expires_at". With several keys,
/// "leases":[{"key","token","fence"},…] replaces the first two.
std::string lease_json(const Outcome& outcome, const std::vector<Lease>& leases,
                       const std::string& handle);

/// A successful extend: the outcome with "valid_ms", how long the leases are valid from now, and
/// "expires_at"; nullopt leaves out both, for leases that are all inherited.
std::string extend_json(const Outcome& outcome, std::optional<Duration> valid);

/// The result of `run`, for --status-fd and `run --json`. "fence" is that of the lease, with
/// "shared" and, for slots, "slot" and "slots". With several keys "leases":[{"key","fence",…},…]
/// replaces these.
std::string run_json(const RunState& state);

}  // namespace redlock::output
