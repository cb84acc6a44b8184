#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "commands/options.hpp"
#include "commands/session.hpp"
#include "engine/waiter.hpp"
#include "output/outcome.hpp"

namespace redlock::commands {

/// What a command demands of its leases, besides its LockOptions.
struct Demands {
  std::string_view command;    ///< `run`, `acquire` or `hold`
  Duration needed_validity{};  ///< each lease must last for so long when the last one is granted
  std::string own_for{};       ///< the option that needs leases of its own, which no other process
                               ///< keeps; empty: a parent lease will do
  std::string own_advice{};    ///< what to do instead of using that option here
  std::string not_granted{};   ///< appended to the message of a failed wait
  bool records_skips = false;  ///< the servers count the waits that end without the lock
  std::optional<Duration> once_per{};  ///< learn of a success in this time
  bool renews_all = false;  ///< each of several leases must last for a full ttl at the end
};

/// Why there are no leases.
struct NotGranted {
  output::Outcome outcome;  ///< unless `interrupted`
  std::optional<StopRequest> stop_request{};
  bool interrupted = false;  ///< by the session's interrupt, and not by a stop request
};

/// Acquires the leases of one command, all or none.
class Acquisition {
 public:
  /// `session` and `options` must outlive it.
  Acquisition(Session& session, const LockOptions& options, Demands demands);

  /// Waits for the leases as the options say. It may be called again once they are released: that
  /// continues the wait, whose time has gone on, and makes no newer waiter of this one.
  asio::awaitable<Result<std::shared_ptr<HeldSet>, NotGranted>> acquire();

  [[nodiscard]] const Demands& demands() const noexcept { return demands_; }

  /// When the wait ended, which is when held times begin; and its length so far.
  [[nodiscard]] Instant ended() const noexcept { return ended_; }
  [[nodiscard]] Duration waited() const noexcept { return ended_ - began_; }

 private:
  asio::awaitable<Result<std::shared_ptr<HeldSet>, WaitFailure>> wait(
      std::vector<AcquireOrder> orders);
  asio::awaitable<std::optional<NotGranted>> find_obstacle(HeldSet& leases);
  [[nodiscard]] NotGranted failed(const WaitFailure& failure) const;
  [[nodiscard]] NotGranted needs_own_lease() const;
  [[nodiscard]] NotGranted not_renewed(const ExtendResult& renewed) const;

  Session& session_;
  const LockOptions& options_;
  Demands demands_;
  Instant began_;
  Instant ended_;
  std::shared_ptr<Supersession> supersession_;  ///< of each wait; null before the first
};

}  // namespace redlock::commands
