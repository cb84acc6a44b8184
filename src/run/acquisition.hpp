#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>

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
struct AcquireOutput {
  Finish finish;
  std::string text;                 ///< for stdout: the tokens, exports or JSON
  std::shared_ptr<HeldSet> leases;  ///< empty: there are none
  std::string short_text{};         ///< of a failure: `text` without the keys
};

/// One `acquire` from the wait to its output, and its events. Writes the token file; the caller
/// writes stdout.
class Acquisition {
 public:
  /// `job_group`: see Printer. Throws std::system_error.
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

  /// Where the signal ends a wait, it does what cancel() does, and we die of it.
  void on_signal(int signal);

  /// Ends acquire() without leases, unless it is about to return some. `why` is for the user; of
  /// several the first counts.
  void cancel(std::string why);

  asio::awaitable<AcquireOutput> acquire();

  /// When the last lock was granted: held times count from there. After an acquire() that has
  /// leases.
  [[nodiscard]] Instant granted_at() const noexcept { return granted_at_; }

  /// What acquire() returned did not reach the script: releases the leases and removes the token
  /// file. `why` is for the user.
  asio::awaitable<AcquireOutput> undo(std::shared_ptr<HeldSet> leases, std::string why);

  /// The leases that acquire() returned are no longer needed.
  asio::awaitable<void> release(HeldSet& leases);

  /// For --events-fd alone: an event that the user is told of in another way.
  void write_event(const output::event::Any& event);

 private:
  /// Why acquire() is to end without leases.
  struct Cancellation {
    int signal;       ///< 0: none was sent
    std::string why;  ///< where there is no signal
  };

  [[nodiscard]] output::Outcome outcome_of(output::CommandResult result, std::string message) const;
  AcquireOutput end_cancelled() const;
  AcquireOutput refuse_parent_lease() const;
  AcquireOutput fail_to_renew(const ExtendResult& renewed) const;
  AcquireOutput fail(const output::Outcome& outcome) const;
  AcquireOutput tell_released_again(const std::string& why) const;
  AcquireOutput conclude(const output::Outcome& outcome, bool acquired) const;
  [[nodiscard]] std::string text_of(const HeldSet& leases, const LeaseHandle& handle) const;

  Session& session_;
  const AcquireOptions& options_;
  Printer printer_;
  std::optional<EventWriter> event_writer_;  ///< of --events-fd
  Instant began_;
  Instant granted_at_;
  std::shared_ptr<ParentLinks> parents_;  ///< with --while-pid; a signal to the parent run is not
                                          ///< meant for the watched process
  std::optional<Cancellation> cancelled_;
};

}  // namespace redlock::run
