#include "run/background_holder.hpp"

#include "child/cpu_share.hpp"
#include "child/descriptors.hpp"

namespace redlock::run {
namespace {

constexpr const char* not_handed_over = "the lease could not be handed over";

}  // namespace

BackgroundHolder::BackgroundHolder(Session& session, AcquireOptions& options,
                                   std::shared_ptr<child::FrontLink> link, pid_t front)
    : session_(session),
      link_(std::move(link)),
      job_group_(::getpgid(front)),
      acquisition_(session, options, job_group_) {}

asio::awaitable<int> BackgroundHolder::live() {
  link_->start({[this](int signal) { acquisition_.on_signal(signal); },
                [this] { session_.interrupt().raise(); }});
  begin();
  Handout handout = co_await acquisition_.acquire();
  if (handout.leases) {
    granted(*handout.leases);
    child::leave_session(job_group_);
    child::claim_cpu_share();
    // From now on: the front process may be stopped by its job for longer than the lease lasts.
    renew(handout.leases);
    if (const std::string why = needless(); !why.empty())
      handout = co_await acquisition_.undo(handout.leases, why);
  }
  co_await hand_over(std::move(handout));
  co_await close_servers();
  co_return 0;
}

/// The front process says of one that it does not hear of that it was killed, and that its lock
/// expires by itself: so it is told how it ended, whatever else cannot be passed on.
asio::awaitable<void> BackgroundHolder::hand_over(Handout handout) {
  const bool reported = co_await report(handout);
  if (!reported && handout.leases)
    handout = co_await acquisition_.undo(handout.leases, not_handed_over);
  if (!reported && !co_await report(handout)) {
    handout.text = handout.short_text;  // a longer one needs a file
    (void)co_await report(handout);
  }
  if (!handout.leases) co_return;

  const bool reached = co_await link_->until_handed_over();
  if (reached) {
    output::StandardError::of_process().close();
    child::let_go_of_caller();
    co_await keep(handout.leases);
  } else {
    (void)co_await acquisition_.undo(handout.leases, not_handed_over);
  }
}

/// False when the report cannot be sent to the front process.
asio::awaitable<bool> BackgroundHolder::report(const Handout& handout) {
  if (!handout.leases) {
    // First what others wait for: our place in the queue, and a lock that was released again. Then
    // nothing depends on us any more, and the last line may wait before the front process ends.
    co_await close_servers();
    output::StandardError::of_process().finish();
  }
  const Finish& finish = handout.finish;
  co_return link_->report(finish.exit_code, finish.signal, handout.text);
}

asio::awaitable<void> BackgroundHolder::close_servers() {
  if (!std::exchange(closed_, true)) co_await session_.server_set().close(CloseMode::drain);
}

void BackgroundHolder::renew(const std::shared_ptr<HeldSet>& leases) {
  SetEvents events;
  events.extended = [this, set = leases.get()](bool after_trouble) {
    session_.events().report(output::event::Renewed{after_trouble});
    extended(*set);
  };
  events.in_trouble = [this](const Resource& resource, const LeaseInTrouble& trouble) {
    if (trouble.first)
      session_.events().report(output::event::RenewalFailed{resource, trouble.faults});
    in_trouble(resource, trouble);
  };
  events.ended = [this](const Resource& resource, const LeaseEnded& end) { ended(resource, end); };
  leases->keep(std::move(events));
}

}  // namespace redlock::run
