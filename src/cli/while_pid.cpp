#include "cli/while_pid.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "child/descriptors.hpp"
#include "child/front_link.hpp"
#include "cli/leftovers.hpp"
#include "core/validity.hpp"
#include "support/readable.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

/// Between two tries to kill what does not die at once.
constexpr Milliseconds kill_interval{2};

/// Between two looks at what was told to stop: none of it is our child, so nothing tells us.
constexpr Milliseconds grace_interval{10};

/// The holder of a lease that lasts as long as a process.
class PidHolder {
 public:
  PidHolder(Session& session, AcquireOptions& options, std::shared_ptr<child::FrontLink> link)
      : session_(session),
        options_(options),
        link_(std::move(link)),
        acquisition_(session, options, ::getpgid(::getppid())),
        bell_(session.clock().make_bell()) {}

  asio::awaitable<int> live() {
    link_->start({[this](int signal) { acquisition_.on_signal(signal); }, [] {}, [this] { session_.interrupt().raise(); }});
    Handout handout = co_await acquisition_.acquire();
    const Finish finish = handout.finish;
    if (handout.leases) {
      // From now on: front may be stopped by its job for longer than the lease lasts.
      renew(handout.leases);
      spawn(session_.electorate().executor(), [this] { return watch(); });
    }
    link_->report(finish.signal != 0 ? -finish.signal : finish.exit_code, handout.text);
    if (handout.leases) {
      const bool reached = co_await link_->until_handed_over();
      if (reached) {
        co_await keep(handout.leases);
      } else {
        (void)co_await acquisition_.undo(handout.leases, "the lease could not be handed over");
      }
    }
    co_await session_.electorate().close(Farewell::thorough);
    co_return 0;
  }

 private:
  child::WatchedProcess& process() { return options_.while_pid->process; }
  [[nodiscard]] const child::StopPlan& plan() const { return options_.while_pid->stop; }

  /// Command substitution returns when the last writer is gone: we must not be it.
  static void let_go() {
    child::close_inherited(std::nullopt);
    const UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (null) ::dup2(null.get(), STDERR_FILENO);
  }

  asio::awaitable<void> keep(std::shared_ptr<HeldSet> leases) {
    let_go();
    co_await guard();
    // Others of several must not be given away while the process, told or not, still runs under them.
    while (leases->leases().size() > 1 && !released_by_others_ && !process().ended()) co_await bell_->wait_until(Instant::max());
    (void)co_await leases->release(/*by_hand=*/false);
  }

  void renew(const std::shared_ptr<HeldSet>& leases) {
    deadline_ = leases->deadline();
    SetEvents events;
    events.extended = [this, set = leases.get()](bool) {
      deadline_ = std::max(deadline_, set->deadline());
      bell_->ring();
    };
    events.in_trouble = [](const Resource&, const LeaseInTrouble&) {};
    events.ended = [this](const Resource&, const LeaseEnded& end) {
      released_by_others_ = end.not_ours && end.not_ours->why == NotOurs::Why::released;
      lease_over_ = true;
      bell_->ring();
    };
    leases->keep(std::move(events));
  }

  /// Tells when the process has ended.
  asio::awaitable<void> watch() {
    Readable ended(session_.electorate().executor(), process().fd());
    co_await ended.wait();
    bell_->ring();
    link_->give_up_hand_over();
  }

  /// Until the process has ended, or the lease is over and the plan is carried out.
  asio::awaitable<void> guard() {
    std::optional<Instant> kill_at;
    while (!process().ended() && !released_by_others_) {
      const Instant now = session_.clock().now();
      const Instant terminate_at = deadline_ - plan().margin - plan().grace;
      if (!kill_at && (lease_over_ || now >= terminate_at)) {
        kill_at = plan().on_lost == child::OnLost::kill ? std::min(now + plan().grace, deadline_ - plan().margin) : Instant::max();
        if (plan().on_lost == child::OnLost::kill) process().hold_still();
        if (plan().on_lost != child::OnLost::warn) process().signal(plan().stop_signal);
      }
      if (kill_at && now >= *kill_at) break;
      if (lease_over_ && plan().on_lost != child::OnLost::kill) co_return;
      co_await bell_->wait_until(kill_at ? *kill_at : terminate_at);
    }
    if (!kill_at || *kill_at == Instant::max()) co_return;
    // What the process leaves behind when it is told to stop has its grace, too, and must not outlive the lease either.
    while (process().anything_lives() && session_.clock().now() < *kill_at) {
      co_await sleep_until(session_.clock(), std::min(*kill_at, session_.clock().now() + grace_interval));
    }
    co_await kill_all();
  }

  asio::awaitable<void> kill_all() {
    bool dead = process().kill();
    // Reckoned from then: to find thousands of processes takes a while.
    const Instant last = std::max(deadline_, session_.clock().now() + child::death_patience);
    while (!dead && session_.clock().now() < last) {
      co_await sleep_until(session_.clock(), session_.clock().now() + kill_interval);
      dead = process().kill();
    }
  }

  Session& session_;
  AcquireOptions& options_;
  std::shared_ptr<child::FrontLink> link_;
  Acquisition acquisition_;
  std::unique_ptr<Bell> bell_;
  Instant deadline_;
  bool lease_over_ = false;
  bool released_by_others_ = false;
};

}  // namespace

void keep_while_pid(const Settings& settings, AcquireOptions& options, child::Channel channel, child::SignalGate& gate) {
  ::setpgid(0, 0);
  child::ignore_all();
  const Console console = make_console(settings);
  try {
    Session session(settings, options.servers, options.server_timeout);
    const auto link = std::make_shared<child::FrontLink>(session.io().get_executor(), session.clock(), std::move(channel), gate);
    PidHolder holder(session, options, link);
    session.run(holder.live());
    clear_away_behind(settings, options.servers, session);
  } catch (const std::exception& error) {
    // Front learns it from our end.
    console.error(escape_for_terminal(error.what()));
  }
  ::_exit(0);
}

}  // namespace redlock::cli
