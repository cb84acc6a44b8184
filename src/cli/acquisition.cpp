#include "cli/acquisition.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "child/signals.hpp"
#include "cli/lease_file.hpp"
#include "cli/outcome.hpp"
#include "cli/waiting.hpp"
#include "core/lease_handle.hpp"
#include "core/validity.hpp"
#include "engine/held_lease.hpp"
#include "output/describe.hpp"

namespace redlock::cli {

void Acquisition::on_signal(int signal) {
  if (done_ || !child::ends_a_wait(signal)) return;
  ended_by_ = signal;
  session_.interrupt().raise();
}

asio::awaitable<Handout> Acquisition::acquire() {
  Duration needed = margin(options_.ttl);
  if (options_.while_pid) needed += options_.while_pid->stop.grace;
  const AcquireOrder order{options_.resource, options_.ttl, options_.owner, needed};
  auto lease = co_await wait_for_lock(session_, order, options_.wait);
  if (!lease) co_return fail(lease.error());
  if (session_.interrupt().raised()) {
    co_await give_back(*lease);
    co_return interrupted();
  }
  done_ = true;
  Handout handout = hand_out(*lease);
  if (!handout.lease) co_await give_back(*lease);
  co_return handout;
}

asio::awaitable<Handout> Acquisition::undo(Lease lease, std::string why) {
  co_await give_back(lease);
  const std::string message = why + "; the lock was released again";
  co_return conclude(outcome_of("acquire", options_.resource, ExitCode::os_error, message), /*busy=*/false);
}

Handout Acquisition::fail(const AttemptFailure& failure) const {
  if (failure.why == AttemptFailure::Why::interrupted) return interrupted();
  const FailureMeaning meaning = meaning_of(failure.why);
  const bool busy = meaning.code == ExitCode::busy;
  output::Outcome outcome =
      outcome_of("acquire", options_.resource, meaning.code, output::failure_text(failure, session_.electorate().size()));
  if (busy) outcome.exit_code = options_.conflict_exit_code;
  outcome.holder = failure.holder;
  outcome.faults = failure.faults;
  return conclude(outcome, busy);
}

Handout Acquisition::hand_out(const Lease& lease) {
  const LeaseHandle handle{lease.resource, lease.token, lease.fence, fingerprint(options_.servers)};
  if (options_.token_file) {
    const auto written = write_lease_file(*options_.token_file, handle);
    if (!written) {
      const std::string message = "cannot write the lease to " + written.error() + "; the lock was released again";
      return conclude(outcome_of("acquire", options_.resource, ExitCode::os_error, message), /*busy=*/false);
    }
    wrote_file_ = true;
  }
  std::string output;
  if (session_.json()) {
    output::Outcome outcome = outcome_of("acquire", options_.resource, ExitCode::done, {});
    outcome.result = "acquired";
    output = output::lease_json(outcome, lease, handle.text()) + "\n";
  } else if (options_.prints_export) {
    output = export_line(handle);
  } else if (!options_.token_file) {
    output = lease.token.secret() + "\n";
  }
  return {Finish{}, std::move(output), lease};
}

asio::awaitable<void> Acquisition::give_back(Lease lease) {
  HeldLease held(session_.electorate(), lease.resource, lease.token, lease.fence);
  co_await held.release(/*by_hand=*/false);
  if (wrote_file_) ::unlink(options_.token_file->c_str());
}

Handout Acquisition::interrupted() const {
  return {Finish{0, ended_by_}, options_.prints_export ? failed_export_line(signal_exit_base + ended_by_) : std::string(), std::nullopt};
}

Handout Acquisition::conclude(const output::Outcome& outcome, bool busy) const {
  const std::string line = fmt::format("{}: {}", output::key_text(options_.resource), outcome.message);
  busy ? session_.console().notice(line) : session_.console().error(line);
  std::string output;
  if (session_.json()) output = output::outcome_json(outcome) + "\n";
  if (options_.prints_export) output = failed_export_line(outcome.exit_code);
  return {Finish{outcome.exit_code}, std::move(output), std::nullopt};
}

}  // namespace redlock::cli
