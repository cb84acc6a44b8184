#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>

#include "commands/finish.hpp"
#include "commands/options.hpp"
#include "commands/parent_links.hpp"
#include "commands/session.hpp"
#include "engine/waiter.hpp"
#include "output/event_writer.hpp"
#include "output/json.hpp"
#include "output/printer.hpp"

namespace redlock::commands {

/// What `acquire` returns to the script.
struct AcquireOutput {
  Finish finish;
  std::string text;                 ///< for stdout: the tokens, exports or JSON
  std::shared_ptr<HeldSet> leases;  ///< null: no lease was acquired
  std::string short_text{};         ///< after a failure: `text` without the keys
};

/// One `acquire`, from the wait to its output, with its events. Writes the token file; the caller
/// writes stdout.
class Acquisition {
 public:
  /// `job_group`: see Printer. Throws std::system_error.
  Acquisition(Session& session, const AcquireOptions& options, pid_t job_group)
      : session_(session),
        options_(options),
        printer_(session.console(), session.clock(), options.resources, job_group, session.json(),
                 /*reports_end=*/true),
        began_(session.clock().now()),
        parents_(std::make_shared<ParentLinks>(session.io().get_executor(), session.clock(),
                                               session.interrupt(), [](int) {})) {
    session.events().add(printer_);
    if (options.events_fd) {
      event_writer_.emplace(*options.events_fd, options.resources);
      session.events().add(*event_writer_);
    }
  }

  /// If the signal ends a wait, cancels as cancel() does, and the process will die of the signal.
  void on_signal(int signal);

  /// Makes acquire() end without leases, unless it is about to return some. `why` is for the user;
  /// of several calls the first counts.
  void cancel(std::string why);

  asio::awaitable<AcquireOutput> acquire();

  /// When the last lock was granted, which is when held times begin. Valid after an acquire() that
  /// returned leases.
  [[nodiscard]] Instant granted_at() const noexcept { return granted_at_; }

  /// The output of acquire() did not reach the script: releases the leases and removes the token
  /// file. `why` is for the user.
  asio::awaitable<AcquireOutput> undo(std::shared_ptr<HeldSet> leases, std::string why);

  /// Releases the leases that acquire() returned.
  asio::awaitable<void> release(HeldSet& leases);

  /// Writes an event to --events-fd only, because it is reported to the user in another way.
  void write_event(const output::event::Any& event);

 private:
  /// Why acquire() must end without leases.
  struct Cancellation {
    int signal;       ///< 0: no signal was sent
    std::string why;  ///< empty if there was a signal
  };

  [[nodiscard]] output::Outcome outcome_of(output::CommandResult result, std::string message) const;
  AcquireOutput end_cancelled() const;
  AcquireOutput refuse_parent_lease() const;
  AcquireOutput fail_to_renew(const ExtendResult& renewed) const;
  AcquireOutput fail(const output::Outcome& outcome) const;
  AcquireOutput fail_after_release(const std::string& why) const;
  AcquireOutput conclude(const output::Outcome& outcome, bool acquired) const;
  [[nodiscard]] AcquireOutput output_without_leases(const output::Outcome& outcome,
                                                    Finish finish) const;
  [[nodiscard]] std::string text_of(const HeldSet& leases, const LeaseHandle& handle) const;

  Session& session_;
  const AcquireOptions& options_;
  output::Printer printer_;
  std::optional<output::EventWriter> event_writer_;  ///< of --events-fd
  Instant began_;
  Instant granted_at_;
  std::shared_ptr<ParentLinks> parents_;  ///< for --while-pid; ignores signals from the parents
  std::optional<Cancellation> cancelled_;
};

}  // namespace redlock::commands
