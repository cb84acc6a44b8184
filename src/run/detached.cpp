#include "run/detached.hpp"

#include <unistd.h>

#include "output/describe.hpp"
#include "run/background_holder.hpp"

namespace redlock::run {
namespace {

class DetachedHolder final : public BackgroundHolder {
 public:
  DetachedHolder(Session& session, AcquireOptions& options, std::shared_ptr<child::FrontLink> link,
                 pid_t front)
      : BackgroundHolder(session, options, std::move(link), front),
        max_hold_(options.detached->max_hold),
        changed_(session.clock().make_event()) {}

 private:
  void granted(const HeldSet&) override {
    hold_until_ = later(acquisition().granted_at(), max_hold_);
  }

  void ended(const Resource& resource, const LeaseEnded& end) override {
    const bool by_hand = end.not_ours && end.not_ours->why == NotOurs::Why::released;
    if (!by_hand) session().events().report(output::event::Lost{resource, output::ended_text(end)});
    is_over_ = true;
    changed_->notify();
  }

  /// Until the limit, or until the lease has ended: of several locks none is of use without the
  /// others.
  asio::awaitable<void> keep(std::shared_ptr<HeldSet> leases) override {
    while (!is_over_ && session().clock().now() < hold_until_)
      co_await changed_->wait_until(hold_until_);
    co_await acquisition().release(*leases);
  }

  Duration max_hold_;
  std::unique_ptr<Event> changed_;
  Instant hold_until_{};  ///< by --max-hold
  bool is_over_ = false;
};

}  // namespace

void keep_detached(const SessionOptions& about, AcquireOptions& options, child::Channel channel,
                   child::SignalGate& gate, pid_t front) {
  options.owner.pid = ::getpid();
  live_in_background<DetachedHolder>(about, options, std::move(channel), gate, front);
}

}  // namespace redlock::run
