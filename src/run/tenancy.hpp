#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/held_set.hpp"
#include "run/finish.hpp"
#include "run/options.hpp"
#include "run/parent_links.hpp"
#include "run/stay.hpp"

namespace redlock::run {

/// The life of one `run`, in the holder process: wait for the locks, run the command under them,
/// release. Single-threaded.
class Tenancy {
 public:
  /// All must outlive it.
  Tenancy(const TenancyParts& parts, const RunOptions& options);

  /// From the wait to the release; returns how `run` is to end. Call it once.
  asio::awaitable<Finish> live();

 private:
  asio::awaitable<Result<std::shared_ptr<HeldSet>, WaitFailure>> wait(
      std::vector<AcquireOrder> orders);
  [[nodiscard]] Finish conclude_interrupted() const;
  [[nodiscard]] std::string_view option_for_own_leases() const;
  [[nodiscard]] Finish refuse_parent_lease() const;
  asio::awaitable<std::optional<Finish>> skip_if_fresh(HeldSet& leases);
  asio::awaitable<std::optional<Finish>> run_under(std::shared_ptr<HeldSet> leases);
  asio::awaitable<void> give_up_turn(Stay& stay);
  asio::awaitable<Finish> release(Stay& stay, Finish finish, Duration expire_in = Duration::zero(),
                                  std::optional<Instant> ended = std::nullopt);
  [[nodiscard]] Duration left_of_min_hold(const child::Ending& ending) const;
  [[nodiscard]] Instant now() const { return parts_.session.clock().now(); }

  TenancyParts parts_;
  const RunOptions& options_;
  std::shared_ptr<ParentLinks> parents_;        ///< to parent runs
  std::shared_ptr<Stay> stay_;                  ///< the current one, or the last
  std::unique_ptr<Event> changed_;              ///< a lease is lost, or a nested run has ended
  std::shared_ptr<Supersession> supersession_;  ///< the same in each wait; null: none so far
  Instant began_;
  Instant granted_at_;  ///< when the last lock was granted: held times count from there
};

}  // namespace redlock::run
