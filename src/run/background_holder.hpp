#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <asio/awaitable.hpp>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "child/front_link.hpp"
#include "child/signals.hpp"
#include "output/standard_error.hpp"
#include "run/acquisition.hpp"
#include "run/leftovers.hpp"
#include "run/options.hpp"
#include "run/session.hpp"
#include "support/text.hpp"

namespace redlock::run {

/// A holder process that `acquire` leaves in the background: it acquires, renews, reports to the
/// front process what the script gets, closes what it has of the caller's, and keeps the leases.
/// A lease that does not reach the script is released. For how long the others are kept, and what
/// comes of a loss, is what the kinds of holder know.
class BackgroundHolder {
 public:
  virtual ~BackgroundHolder() = default;
  BackgroundHolder(const BackgroundHolder&) = delete;
  BackgroundHolder& operator=(const BackgroundHolder&) = delete;

  /// The whole life, until the servers are closed; 0.
  asio::awaitable<int> live();

 protected:
  /// All must outlive it. `front`: the front process.
  BackgroundHolder(Session& session, AcquireOptions& options,
                   std::shared_ptr<child::FrontLink> link, pid_t front);

  // --- What the kinds of holder add ---

  /// Before the wait.
  virtual void begin() {}

  /// The leases are granted, and are renewed from here on.
  virtual void granted(const HeldSet& leases) = 0;

  /// Why the leases are not needed after all, before they are handed over; empty: they are.
  [[nodiscard]] virtual std::string needless() { return {}; }

  /// A quorum confirmed a renewal.
  virtual void extended(const HeldSet&) {}

  /// A round of renewal found no quorum.
  virtual void in_trouble(const Resource&, const LeaseInTrouble&) {}

  /// One of the leases has ended.
  virtual void ended(const Resource& resource, const LeaseEnded& end) = 0;

  /// The script has the leases: keeps them as long as they are needed, and releases them.
  virtual asio::awaitable<void> keep(std::shared_ptr<HeldSet> leases) = 0;

  [[nodiscard]] Session& session() noexcept { return session_; }
  [[nodiscard]] const Session& session() const noexcept { return session_; }
  [[nodiscard]] child::FrontLink& link() noexcept { return *link_; }
  [[nodiscard]] Acquisition& acquisition() noexcept { return acquisition_; }

 private:
  void renew(const std::shared_ptr<HeldSet>& leases);
  asio::awaitable<void> hand_over(Handout handout);
  asio::awaitable<bool> report(const Handout& handout);
  asio::awaitable<void> close_servers();

  Session& session_;
  std::shared_ptr<child::FrontLink> link_;
  pid_t job_group_;
  Acquisition acquisition_;
  bool closed_ = false;  ///< the servers
};

/// The process of such a holder, with a session and a link to the front process of its own.
template <class Holder>
[[noreturn]] void live_in_background(const SessionOptions& about, AcquireOptions& options,
                                     child::Channel channel, child::SignalGate& gate, pid_t front) {
  ::setpgid(0, 0);
  child::ignore_all();
  try {
    Session session(about, options.servers, options.server_timeout);
    const auto link = std::make_shared<child::FrontLink>(
        session.io().get_executor(), session.clock(), std::move(channel), gate, front);
    Holder holder(session, options, link, front);
    session.run(holder.live());
    clear_away_behind(about, options.servers, session);
    output::StandardError::of_process().finish();
  } catch (const std::exception& error) {
    // The front process learns of it from our end.
    about.console.error(escape_for_terminal(error.what()));
  }
  ::_exit(0);
}

}  // namespace redlock::run
