#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>

#include "child/stop_plan.hpp"
#include "child/watched_process.hpp"
#include "engine/waiter.hpp"
#include "output/json.hpp"
#include "run/event_writer.hpp"
#include "run/finish.hpp"
#include "run/options.hpp"
#include "run/parent_links.hpp"
#include "run/printer.hpp"
#include "run/session.hpp"

namespace redlock::run {

/// What an acquire hands to the script.
struct Handout {
  Finish finish;
  std::string text;                 ///< for stdout: the tokens, exports or JSON
  std::shared_ptr<HeldSet> leases;  ///< empty: there are none
  std::string short_text{};         ///< of a failure: `text` without the keys
};

/// One `acquire` from the wait to the handout, and its events. Writes the token file; the caller
/// writes stdout.
class Acquisition {
 public:
  /// `job_group`: see wait_for_locks(). Throws std::system_error.
  Acquisition(Session& session, const AcquireOptions& options, pid_t job_group)
      : session_(session),
        options_(options),
        printer_(session.console(), session.clock(), options.resources, job_group, session.json(),
                 /*tells_end=*/true),
        began_(session.clock().now()),
        parents_(std::make_shared<ParentLinks>(session.io().get_executor(), session.clock(),
                                               session.interrupt(), [](int) {})) {
    session.events().add(printer_);
    if (options.events_fd) {
      event_writer_.emplace(*options.events_fd, options.resources);
      session.events().add(*event_writer_);
    }
  }

  /// Ends the wait. Once there is a lease to hand out, a signal changes nothing.
  void on_signal(int signal);

  /// Ends the wait, too, because the lease is no longer needed. `why` is for the user.
  void call_off(std::string why);

  asio::awaitable<Handout> acquire();

  /// When the last lock was granted: held times count from there. After an acquire() that has
  /// leases.
  [[nodiscard]] Instant granted_at() const noexcept { return granted_at_; }

  /// The handout did not reach the script: releases the lease and removes the token file. `why` is
  /// for the user.
  asio::awaitable<Handout> undo(std::shared_ptr<HeldSet> leases, std::string why);

  /// The lease was handed out, and is no longer needed.
  asio::awaitable<void> release(HeldSet& leases);

  /// For --events-fd alone: an event that the user is told of in another way.
  void write_event(const output::event::Any& event);

 private:
  Handout fail(const WaitFailure& failed) const;
  Handout hand_out(std::shared_ptr<HeldSet> leases);
  [[nodiscard]] Handout refuse_parent_lease() const;
  asio::awaitable<std::optional<Handout>> renew_all(HeldSet& leases);
  [[nodiscard]] Handout interrupted() const;
  [[nodiscard]] Handout conclude(const output::Outcome& outcome) const;
  asio::awaitable<void> take_back(HeldSet& leases);

  Session& session_;
  const AcquireOptions& options_;
  Printer printer_;
  std::optional<EventWriter> event_writer_;  ///< of --events-fd
  Instant began_;
  Instant granted_at_;
  std::shared_ptr<ParentLinks> parents_;  ///< with --while-pid; a signal to the parent run is not
                                          ///< meant for the watched process
  int ended_by_ = 0;
  std::string called_off_;  ///< the reason; empty: the front process was killed
  bool done_ = false;
  bool wrote_file_ = false;
};

}  // namespace redlock::run
