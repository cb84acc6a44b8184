#include "run/detached.hpp"

#include <unistd.h>

#include "child/cpu_share.hpp"
#include "child/descriptors.hpp"
#include "child/front_link.hpp"
#include "output/describe.hpp"
#include "run/background_holder.hpp"

namespace redlock::run {
namespace {

class DetachedHolder {
 public:
  DetachedHolder(Session& session, AcquireOptions& options, std::shared_ptr<child::FrontLink> link,
                 pid_t front)
      : session_(session),
        options_(options),
        link_(std::move(link)),
        job_group_(::getpgid(front)),
        acquisition_(session, options, job_group_),
        event_(session.clock().make_event()) {}

  asio::awaitable<int> live() {
    link_->start(
        {[this](const child::PassedSignal& signal) { acquisition_.on_signal(signal.number); },
         [] {}, [this] { session_.interrupt().raise(); }});
    Handout handout = co_await acquisition_.acquire();
    if (handout.leases) {
      end_ = later(acquisition_.granted_at(), options_.detached->max_hold);
      child::leave_session(job_group_);
      child::claim_cpu_share();
      renew(handout.leases);
    }
    const bool reported =
        link_->report(handout.finish.exit_code, handout.finish.signal, handout.text);
    bool reached = false;
    if (reported && handout.leases) reached = co_await link_->until_handed_over();
    if (reached) {
      co_await keep(handout.leases);
    } else if (handout.leases) {
      (void)co_await acquisition_.undo(handout.leases, "the lease could not be handed over");
    }
    co_await session_.server_set().close(CloseMode::drain);
    co_return 0;
  }

 private:
  void renew(const std::shared_ptr<HeldSet>& leases) {
    SetEvents events;
    events.extended = [this](bool after_trouble) {
      if (after_trouble) session_.events().report(output::event::RenewedAgain{});
    };
    events.in_trouble = [this](const Resource& resource, const LeaseInTrouble& trouble) {
      if (trouble.first)
        session_.events().report(output::event::RenewalFailed{resource, trouble.faults});
    };
    events.ended = [this](const Resource& resource, const LeaseEnded& end) {
      const bool by_hand = end.not_ours && end.not_ours->why == NotOurs::Why::released;
      if (!by_hand)
        session_.events().report(output::event::Lost{resource, output::ended_text(end)});
      is_over_ = true;
      event_->notify();
    };
    leases->keep(std::move(events));
  }

  /// Until the limit, or until the lease has ended: of several locks none is of use without the
  /// others.
  asio::awaitable<void> keep(std::shared_ptr<HeldSet> leases) {
    child::let_go_of_caller();
    while (!is_over_ && session_.clock().now() < end_) co_await event_->wait_until(end_);
    co_await acquisition_.release(*leases);
  }

  Session& session_;
  AcquireOptions& options_;
  std::shared_ptr<child::FrontLink> link_;
  pid_t job_group_;
  Acquisition acquisition_;
  std::unique_ptr<Event> event_;
  Instant end_{};  ///< of --max-hold
  bool is_over_ = false;
};

}  // namespace

void keep_detached(const SessionOptions& about, AcquireOptions& options, child::Channel channel,
                   child::SignalGate& gate, pid_t front) {
  options.owner.pid = ::getpid();
  live_in_background<DetachedHolder>(about, options, std::move(channel), gate, front);
}

}  // namespace redlock::run
