#include "commands/background_holder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <asio/awaitable.hpp>
#include <exception>
#include <memory>
#include <string>

#include "commands/acquisition.hpp"
#include "commands/leftovers.hpp"
#include "guard/front_link.hpp"
#include "guard/notice.hpp"
#include "guard/process_guard.hpp"
#include "output/describe.hpp"
#include "output/standard_error.hpp"
#include "proc/cpu_share.hpp"
#include "proc/descriptors.hpp"
#include "support/duration.hpp"
#include "support/readable.hpp"
#include "support/spawn.hpp"
#include "support/text.hpp"

namespace redlock::commands {
namespace {

constexpr const char* not_handed_over = "the lease could not be handed over";
constexpr const char* front_killed =
    "the process that was to hand the lock over was killed; nothing was locked";
constexpr const char* cannot_renew = "cannot renew";

/// A problem with one of the leases, and so with all of them.
struct Problem {
  enum class Kind {
    unrenewed,  ///< the last renewal found no quorum; the lease is still valid
    lost,       ///< final
    released,   ///< by another process; final
  };
  Kind kind;
  Resource resource;
  std::string reason;  ///< one clause for the user
};

/// Keeps the leases of one `acquire`, with or without a process that they are kept for.
class BackgroundHolder {
 public:
  /// All must outlive it.
  BackgroundHolder(Session& session, AcquireOptions& options,
                   std::shared_ptr<guard::FrontLink> link, pid_t front);

  asio::awaitable<int> live();

 private:
  void listen();
  asio::awaitable<void> watch_process();
  asio::awaitable<AcquireOutput> acquire();
  void renew(const std::shared_ptr<HeldSet>& leases);
  void note_end(const Resource& resource, const LeaseEnded& end);
  bool report(const AcquireOutput& output);
  asio::awaitable<void> report_failure(AcquireOutput output);
  asio::awaitable<bool> keep(const HeldSet& leases);
  asio::awaitable<void> keep_until_max_hold();
  asio::awaitable<bool> keep_for_process(const HeldSet& leases);

  void announce_stop(guard::StopReason why);
  void announce_unsafe(const guard::GuardEnd& end);
  void notify_process(const std::string& text) { guard::post_notice(*process_, text); }
  void write_stop(guard::StopReason why);

  [[nodiscard]] bool leases_ended() const {
    return problem_ && problem_->kind != Problem::Kind::unrenewed;
  }
  [[nodiscard]] bool leases_released() const {
    return problem_ && problem_->kind == Problem::Kind::released;
  }
  [[nodiscard]] std::string process_has_ended() const {
    return fmt::format("process {} has ended", process_->pid());
  }

  Session& session_;
  const std::vector<Resource>& resources_;
  const guard::StopPlan& plan_;
  proc::WatchedProcess* process_;  ///< null: none
  std::shared_ptr<guard::FrontLink> link_;
  pid_t job_group_;
  Acquisition acquisition_;
  std::optional<guard::ProcessGuard> guard_;  ///< of the process
  std::unique_ptr<Event> ended_;              ///< notified when the process or a lease has ended
  std::optional<StopRequest> stop_request_;
  std::optional<Problem> problem_;  ///< nullopt: a quorum confirmed the last renewal
};

BackgroundHolder::BackgroundHolder(Session& session, AcquireOptions& options,
                                   std::shared_ptr<guard::FrontLink> link, pid_t front)
    : session_(session),
      resources_(options.resources),
      plan_(options.background->stop),
      process_(options.background->process ? &*options.background->process : nullptr),
      link_(std::move(link)),
      job_group_(::getpgid(front)),
      acquisition_(session, options, job_group_),
      ended_(session.clock().make_event()) {
  if (process_ == nullptr) return;
  guard::ProcessGuardEvents events;
  events.before_stop = [this](guard::StopReason why) { announce_stop(why); };
  events.stopping = [this](guard::StopReason why) { write_stop(why); };
  guard_.emplace(session.clock(), *process_, plan_, std::move(events));
}

asio::awaitable<int> BackgroundHolder::live() {
  listen();
  AcquireOutput output = co_await acquire();
  if (!output.leases) {
    co_await report_failure(std::move(output));
    co_return 0;
  }

  if (co_await link_->until_handed_over()) {
    output::StandardError::of_process().close();
    proc::detach_from_caller();
    if (co_await keep(*output.leases)) co_await acquisition_.release(*output.leases);
  } else {
    (void)co_await acquisition_.undo(output.leases, not_handed_over);
  }
  co_await session_.server_set().close(CloseMode::drain);
  co_return 0;
}

void BackgroundHolder::listen() {
  guard::FrontLink::Handlers handlers;
  handlers.wait_ended = [this](int signal) { acquisition_.on_signal(signal); };
  handlers.guard_gone = [this] { acquisition_.cancel(front_killed); };
  link_->start(std::move(handlers));
  if (guard_) spawn(session_.io().get_executor(), [this] { return watch_process(); });
}

/// Ends whatever is going on when the process has ended, because the leases are no longer needed.
asio::awaitable<void> BackgroundHolder::watch_process() {
  Readable ended(session_.io().get_executor(), process_->fd());
  co_await ended.wait();
  guard_->process_has_ended();
  ended_->notify();
  acquisition_.cancel(process_has_ended());
  link_->give_up_hand_over();
}

/// Returns leases only if they were reported to the front process for the script.
asio::awaitable<AcquireOutput> BackgroundHolder::acquire() {
  AcquireOutput output = co_await acquisition_.acquire();
  if (!output.leases) co_return output;
  if (guard_) guard_->arm(output.leases->deadline(), acquisition_.granted_at());
  proc::leave_session(job_group_);
  proc::claim_cpu_share();
  // Renew from now on, because the front process may be paused with its job for longer than the
  // lease lasts.
  renew(output.leases);
  if (guard_ && process_->ended())
    co_return co_await acquisition_.undo(output.leases, process_has_ended());
  if (!report(output)) co_return co_await acquisition_.undo(output.leases, not_handed_over);
  co_return output;
}

void BackgroundHolder::renew(const std::shared_ptr<HeldSet>& leases) {
  SetEvents events;
  events.extended = [this, set = leases.get()](bool after_trouble) {
    if (after_trouble) session_.events().report(output::event::Renewed{after_trouble});
    if (guard_) {
      guard_->put_off_measuring(set->next_round());
      guard_->move_deadline(set->deadline());
    }
    if (!leases_ended()) problem_.reset();
  };
  events.in_trouble = [this](const Resource& resource, const LeaseInTrouble& trouble) {
    if (trouble.first)
      session_.events().report(output::event::RenewalFailed{resource, trouble.faults});
    if (leases_ended()) return;
    problem_ = Problem{Problem::Kind::unrenewed, resource,
                       fmt::format("{}: {}", cannot_renew, output::faults_text(trouble.faults))};
  };
  events.ended = [this](const Resource& resource, const LeaseEnded& end) {
    note_end(resource, end);
  };
  events.stop_requested = [this](const StopRequested& asked) {
    stop_request_ = asked.request;
    // Without a process there is nothing that we could stop.
    if (guard_) guard_->stop_on_request();
  };
  leases->keep(std::move(events));
}

void BackgroundHolder::note_end(const Resource& resource, const LeaseEnded& end) {
  const bool by_hand = end.not_ours && end.not_ours->why == NotOurs::Why::released;
  problem_ = Problem{by_hand ? Problem::Kind::released : Problem::Kind::lost, resource,
                     output::ended_text(end)};
  if (guard_) {
    by_hand ? guard_->lease_is_released() : guard_->lease_is_lost();
  } else if (!by_hand) {
    session_.events().report(output::event::Lost{resource, problem_->reason});
    const std::string text =
        fmt::format("{}: lost: {}", output::key_text(resource), problem_->reason);
    session_.console().error(text);  // stderr is closed by now, so only --syslog receives it
    session_.console().audit(text);
  }
  ended_->notify();
}

/// False if it cannot be sent to the front process.
bool BackgroundHolder::report(const AcquireOutput& output) {
  return link_->report(output.finish.exit_code, output.finish.signal, output.text);
}

/// If no report arrives, the front process concludes that the holder process was killed and that
/// the lock expires by itself. So it must get at least a short report.
asio::awaitable<void> BackgroundHolder::report_failure(AcquireOutput output) {
  // First give up what others wait for: our place in the queue, and a lock that was released again.
  // Then no process depends on us, and writing the last line may block.
  co_await session_.server_set().close(CloseMode::drain);
  output::StandardError::of_process().finish();
  if (report(output)) co_return;
  output.text = output.short_text;  // a longer text is sent as a file, which may have failed
  (void)report(output);
}

/// Waits until the leases are no longer needed. False: they must be left to expire, because
/// processes that should be dead still run.
asio::awaitable<bool> BackgroundHolder::keep(const HeldSet& leases) {
  if (guard_) co_return co_await keep_for_process(leases);
  co_await keep_until_max_hold();
  co_return true;
}

/// The loss of one lease ends the wait: the others are of no use without it.
asio::awaitable<void> BackgroundHolder::keep_until_max_hold() {
  const Instant hold_until = later(acquisition_.granted_at(), *plan_.max_hold);
  while (!leases_ended() && session_.clock().now() < hold_until)
    co_await ended_->wait_until(hold_until);
}

asio::awaitable<bool> BackgroundHolder::keep_for_process(const HeldSet& leases) {
  const guard::GuardEnd end = co_await guard_->guard();
  if (!end.left.empty() || end.late > Duration::zero()) announce_unsafe(end);
  // With several locks, the others must not become free while the process still runs, whether or
  // not it was stopped.
  if (leases.leases().size() > 1) {
    while (!leases_released() && !process_->ended()) co_await ended_->wait_until(Instant::max());
  }
  co_return end.left.empty();
}

/// Reported by post_notice(), because no process waits for our exit status, and the user of the
/// watched process must learn why it dies.
void BackgroundHolder::announce_stop(guard::StopReason why) {
  if (why == guard::StopReason::max_hold) {
    return notify_process(fmt::format(
        "{}: held for {}, the limit of --max-hold; stopping process {} and its descendants",
        output::keys_text(resources_), format_duration(*plan_.max_hold), process_->pid()));
  }
  if (why == guard::StopReason::request) {
    return notify_process(fmt::format("{}: {}; stopping process {} and its descendants",
                                      output::keys_text(resources_),
                                      output::asked_text(*stop_request_), process_->pid()));
  }

  const std::string_view what_next =
      plan_.on_lost == guard::OnLost::kill   ? "stopping it and its descendants"
      : plan_.on_lost == guard::OnLost::term ? "sending it the stop signal"
                                             : "it runs on without the lock";
  const std::string trouble =
      problem_ ? fmt::format("{}: {}{}", output::key_text(problem_->resource),
                             leases_ended() ? "lost: " : "", problem_->reason)
               : fmt::format("{}: {}", output::keys_text(resources_), cannot_renew);
  notify_process(
      fmt::format("{}; process {} relies on the lock: {}", trouble, process_->pid(), what_next));
}

void BackgroundHolder::announce_unsafe(const guard::GuardEnd& end) {
  const std::string key = output::keys_text(resources_);
  const std::string time = format_duration(std::chrono::ceil<Milliseconds>(end.late));
  if (end.left.empty()) {
    notify_process(
        fmt::format("{}: UNSAFE: the descendants of process {} were seen dead only {} after the "
                    "end of the lease",
                    key, process_->pid(), time));
  } else {
    notify_process(fmt::format(
        "{}: UNSAFE: processes could not be killed and still run, {} after the end of the lease: "
        "{}",
        key, time, fmt::join(end.left, " ")));
  }
}

/// For --events-fd only; announce_stop() has informed the user.
void BackgroundHolder::write_stop(guard::StopReason why) {
  if (why == guard::StopReason::lease) {
    const auto lost = leases_ended() ? std::optional(problem_->resource) : std::nullopt;
    acquisition_.write_event(
        output::event::Lost{lost, problem_ ? problem_->reason : std::string(cannot_renew)});
    if (plan_.on_lost == guard::OnLost::warn) return;
  }
  std::optional<StopRequest> request;
  if (why == guard::StopReason::request) request = stop_request_;
  acquisition_.write_event(output::event::Stopping{why, plan_.max_hold, std::move(request)});
}

}  // namespace

void hold_in_background(const SessionOptions& about, AcquireOptions& options, guard::Front& front,
                        guard::SignalGate& gate) {
  if (!options.background->process) options.owner.pid = ::getpid();
  guard::leave_job();
  try {
    Session session(about, options.servers, options.server_timeout);
    const auto link = std::make_shared<guard::FrontLink>(
        session.io().get_executor(), session.clock(), front.take_channel(), gate, front.pid());
    BackgroundHolder holder(session, options, link, front.pid());
    session.run(holder.live());
    release_leftovers(about, options.servers, session);
    output::StandardError::of_process().finish();
  } catch (const std::exception& error) {
    // The front process notices that we have ended.
    about.console.error(escape_for_terminal(error.what()));
  }
  ::_exit(0);
}

}  // namespace redlock::commands
