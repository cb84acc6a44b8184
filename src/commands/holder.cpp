#include "commands/holder.hpp"

#include <utility>

#include "commands/conclusion.hpp"
#include "commands/wait.hpp"
#include "engine/inspect.hpp"
#include "support/spawn.hpp"

namespace redlock::commands {

namespace event = output::event;
using output::CommandResult;

HolderProcess::HolderProcess(Session& session, const LockOptions& options, Demands demands,
                             guard::FrontLink& link, HoldReport& report, Guarded& guarded)
    : session_(session),
      options_(options),
      link_(link),
      report_(report),
      guarded_(guarded),
      acquisition_(session, options, std::move(demands)) {}

asio::awaitable<int> HolderProcess::live() {
  for (bool done = false; !done;) {
    const bool granted = co_await wait();
    if (!granted) break;
    done = co_await hold();
  }
  co_await count_if_skipped();
  const output::RunState& state = report_.state;
  if (state.leases.empty()) report_not_acquired(session_, state.outcome, state.waited);

  const CloseMode mode = state.started_at ? CloseMode::immediate : CloseMode::drain;
  co_await session_.server_set().close(mode);
  report();
  co_return 0;
}

// --- The wait ---

/// Returns whether the leases are granted.
asio::awaitable<bool> HolderProcess::wait() {
  auto granted = co_await acquisition_.acquire();
  report_.state.waited = acquisition_.waited();
  if (granted) {
    leases_ = std::move(*granted);
    co_return true;
  }
  NotGranted& why = granted.error();
  report_.state.stop_request = std::move(why.stop_request);
  if (why.interrupted) {
    conclude_interrupted();
  } else {
    report_.conclude(std::move(why.outcome));
  }
  co_return false;
}

void HolderProcess::conclude_interrupted() {
  output::RunState& state = report_.state;
  if (leases_ && leases_->stop_requested()) {
    state.stop_request = leases_->stop_requested()->request;
    const Demands& demands = acquisition_.demands();
    output::Outcome outcome = outcome_of_early_stop(demands.command, options_, *state.stop_request);
    outcome.message += demands.not_granted;
    return report_.conclude(std::move(outcome));
  }
  if (link_.wait_ended_by() == 0) return guarded_.conclude_interrupted();
  report_.conclude_signalled(link_.wait_ended_by(), CommandResult::interrupted);
}

/// For --record-skips. If the servers do not record the skip, the command ends the same way.
asio::awaitable<void> HolderProcess::count_if_skipped() {
  const CommandResult result = report_.state.outcome.result;
  const bool is_skip = result == CommandResult::busy || result == CommandResult::fresh;
  if (!acquisition_.demands().records_skips || !is_skip) co_return;
  const std::string why(output::word_of(result));
  for (const Resource& resource : report_.state.outcome.resources)
    (void)co_await count_skip(session_.server_set(), resource, why);
}

// --- Under the leases ---

/// From the grant to the release. False if the job was paused before the start, so that the leases
/// were released and must be waited for again.
asio::awaitable<bool> HolderProcess::hold() {
  const Started started = co_await guarded_.start(leases_, acquisition_.ended());
  if (started == Started::paused) {
    co_await release_while_paused();
    co_return false;
  }
  if (started == Started::interrupted) conclude_interrupted();

  Parting parting;
  if (started == Started::yes) {
    keep();
    parting = co_await guarded_.finish();
    parted_ = true;
  }
  if (parting.releases) co_await release(std::move(parting));
  co_return true;
}

/// While the job is paused before its start, others may have the lock.
asio::awaitable<void> HolderProcess::release_while_paused() {
  (void)co_await leases_->release();
  report_.add(event::ReleasedWhilePaused{});
  co_await link_.until_continued();
}

void HolderProcess::keep() {
  leases_->keep();
  spawn(session_.io().get_executor(), [this] { return watch_leases(); });
}

asio::awaitable<void> HolderProcess::watch_leases() {
  for (;;) {
    const auto event = co_await leases_->next();
    // After the parting they may still be kept, but nothing works under them any more.
    if (!event || parted_) co_return;
    std::visit([this](const auto& what) { note(what); }, *event);
  }
}

/// What is guarded learns of each change before the user does, because no message may delay the
/// stop signal.
void HolderProcess::note(const SetExtended& event) {
  guarded_.move_deadline(leases_->deadline(), leases_->next_round());
  report_.renewed(event.after_trouble);
}

void HolderProcess::note(const SetInTrouble& event) {
  report_.not_renewed(event);
}

void HolderProcess::note(const SetEnded& event) {
  guarded_.lease_has_ended(event);
}

void HolderProcess::note(const StopRequested& event) {
  report_.state.stop_request = event.request;
  guarded_.stop(reason_of(event.request));
}

asio::awaitable<void> HolderProcess::release(Parting parting) {
  SetReleaseResult result = co_await leases_->release(std::move(parting.terms));
  co_await guarded_.released(std::move(result));
}

// --- The end ---

void HolderProcess::report() {
  auto last = guarded_.last_report();
  if (!last) return;
  const ExitAs exit_as = last->exit_as;
  if (link_.report(exit_as.exit_code, exit_as.signal, std::move(last->text))) return;
  // A long text is sent as a file, which may have failed; if the front process is gone, the short
  // report fails, too.
  const bool has_short_text = !last->short_text.empty();
  if (!link_.report(exit_as.exit_code, exit_as.signal, std::move(last->short_text))) return;
  if (has_short_text) return;
  session_.console().error(
      "cannot pass on the result for --json or --status-fd: no memory, descriptors or file size "
      "(ulimit -f) left");
}

}  // namespace redlock::commands
