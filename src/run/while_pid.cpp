#include "run/while_pid.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "child/notice.hpp"
#include "child/stop_meter.hpp"
#include "child/stop_plan.hpp"
#include "core/validity.hpp"
#include "output/describe.hpp"
#include "run/background_holder.hpp"
#include "support/duration.hpp"
#include "support/readable.hpp"

namespace redlock::run {
namespace {

/// Between two checks whether the stopped processes are all still.
constexpr Milliseconds stop_interval{1};

/// Polls the processes that were told to stop: none of them is our child, so we get no SIGCHLD.
constexpr Milliseconds grace_interval{10};

constexpr std::string_view cannot_renew = "cannot renew";

/// A lease that was lost, or cannot be renewed.
struct Trouble {
  Resource resource;
  std::string reason;
};

/// The holder of a lease that lasts as long as a process.
class PidHolder final : public BackgroundHolder {
 public:
  PidHolder(Session& session, AcquireOptions& options, std::shared_ptr<child::FrontLink> link,
            pid_t front)
      : BackgroundHolder(session, options, std::move(link), front),
        options_(options),
        margin_(plan().margin),
        event_(session.clock().make_event()) {}

 private:
  child::WatchedProcess& process() { return options_.while_pid->process; }
  [[nodiscard]] const child::StopPlan& plan() const { return options_.while_pid->stop; }

  void begin() override {
    spawn(session().server_set().executor(), [this] { return watch(); });
  }

  void granted(const HeldSet& leases) override {
    if (plan().max_hold) hold_until_ = later(acquisition().granted_at(), *plan().max_hold);
    deadline_ = leases.deadline();
  }

  [[nodiscard]] std::string needless() override {
    return process().ended() ? process_has_ended() : std::string();
  }

  void extended(const HeldSet& leases) override {
    deadline_ = std::max(deadline_, leases.deadline());
    trouble_.reset();
    event_->notify();
  }

  void in_trouble(const Resource& resource, const LeaseInTrouble& trouble) override {
    trouble_ = Trouble{resource, "cannot renew: " + output::faults_text(trouble.faults)};
  }

  void ended(const Resource& resource, const LeaseEnded& end) override {
    released_by_others_ = end.not_ours && end.not_ours->why == NotOurs::Why::released;
    trouble_ = Trouble{resource, output::ended_text(end)};
    lease_over_ = true;
    event_->notify();
  }

  asio::awaitable<void> keep(std::shared_ptr<HeldSet> leases) override {
    const bool dead = co_await guard();
    // The other locks of several must not become free while the process, told to stop or not, still
    // runs under them.
    while (leases->leases().size() > 1 && !released_by_others_ && !process().ended())
      co_await event_->wait_until(Instant::max());
    if (!dead) co_return;
    co_await acquisition().release(*leases);
  }

  [[nodiscard]] std::string process_has_ended() {
    return fmt::format("process {} has ended", process().pid());
  }

  /// Notifies when the process has ended.
  asio::awaitable<void> watch() {
    Readable ended(session().server_set().executor(), process().fd());
    co_await ended.wait();
    event_->notify();
    acquisition().call_off(process_has_ended());
    link().give_up_hand_over();
  }

  /// Until the process has ended, or the lease has, or the time for which it may be held, and the
  /// plan is carried out. False when a process outlives the lease that should not.
  asio::awaitable<bool> guard() {
    const child::OnLost on_lost = plan().on_lost;
    std::optional<Instant> stopping_since;
    bool timed_out = false;
    child::StopMeter meter(plan().measure_interval, session().clock().now());
    while (!process().ended() && !released_by_others_ && !stopping_since) {
      const Instant terminate_at =
          on_lost == child::OnLost::warn ? Instant::max() : deadline_ - margin_ - plan().grace;
      if (lease_over_ || session().clock().now() >= std::min(terminate_at, hold_until_)) {
        stopping_since = session().clock().now();
        timed_out = !lease_over_ && hold_until_ <= terminate_at;
      } else {
        if (session().clock().now() >= meter.next()) measure(meter);
        const Instant next = std::min({terminate_at, hold_until_, meter.next()});
        if (!co_await event_->wait_until(next)) meter.note_timer(next, session().clock().now());
      }
    }
    if (!stopping_since) co_return true;
    timed_out ? tell_limit() : tell_loss();
    const child::StopReason why =
        timed_out ? child::StopReason::max_hold : child::StopReason::lease;
    if (on_lost == child::OnLost::kill || timed_out) {
      co_return co_await stop_all(std::min(*stopping_since + plan().grace, deadline_ - margin_),
                                  why);
    }
    if (on_lost == child::OnLost::term)
      co_await tell_all(session().clock().now() + plan().grace, child::WatchedProcess::Reach::met);
    write_stop(why);
    while (!process().ended() && !lease_over_) co_await event_->wait_until(Instant::max());
    co_return true;
  }

  void measure(child::StopMeter& meter) {
    const auto cost = meter.step({process().pid()}, session().clock().now());
    if (!cost) return;
    const Duration needed = needed_margin(plan().margin, *cost);
    margin_ = std::min(needed, std::max(plan().margin, plan().max_margin));
  }

  /// No process waits for our exit status, and the watched process would die without knowing why.
  void tell_loss() {
    const std::string_view what_next =
        plan().on_lost == child::OnLost::kill   ? "stopping it with all that descends from it"
        : plan().on_lost == child::OnLost::term ? "telling it to stop"
                                                : "it runs on without the lock";
    const std::string why =
        trouble_ ? fmt::format("{}: {}{}", output::key_text(trouble_->resource),
                               lease_over_ ? "lost: " : "", trouble_->reason)
                 : fmt::format("{}: {}", output::keys_text(options_.resources), cannot_renew);
    tell(fmt::format("{}; process {} was to have the lock: {}", why, process().pid(), what_next));
  }

  void tell_limit() {
    tell(fmt::format(
        "{}: held for {}, the limit of --max-hold; stopping process {} with all that descends "
        "from it",
        output::keys_text(options_.resources), format_duration(*plan().max_hold), process().pid()));
  }

  void tell(const std::string& text) { child::post_notice(process(), text); }

  /// For --events-fd, of which nothing may wait between a loss and the stop signal.
  void write_stop(child::StopReason why) {
    if (why == child::StopReason::lease) {
      const std::optional<Resource> lost =
          lease_over_ ? std::optional(trouble_->resource) : std::nullopt;
      acquisition().write_event(
          output::event::Lost{lost, trouble_ ? trouble_->reason : std::string(cannot_renew)});
      if (plan().on_lost == child::OnLost::warn) return;
    }
    acquisition().write_event(output::event::Stopping{why, plan().max_hold});
  }

  /// Holds the processes still for at most half of the time until `kill_at`, then sends the stop
  /// signal and CONT. At `kill_at` no time is left to hold them.
  asio::awaitable<void> tell_all(Instant kill_at, child::WatchedProcess::Reach reach) {
    // Waiting for a process that cannot be stopped, such as one that waits for a disk, must not use
    // up the whole grace of the others.
    const Instant began = session().clock().now();
    co_await hold_still(began + (kill_at - began) / 2);
    process().signal(plan().stop_signal, reach);
  }

  asio::awaitable<void> hold_still(Instant until) {
    while (!process().hold_still(until) && session().clock().now() < until) {
      co_await sleep_until(session().clock(), session().clock().now() + stop_interval);
    }
  }

  /// The stop signal, the grace, KILL. Reports a failure and returns false unless all processes
  /// were seen dead before the deadline.
  asio::awaitable<bool> stop_all(Instant kill_at, child::StopReason why) {
    co_await tell_all(kill_at, child::WatchedProcess::Reach::stopped);
    write_stop(why);
    // Descendants that outlive the stopped process have its grace, too, and must not outlive the
    // lease either.
    while (!process().living().empty() && session().clock().now() < kill_at) {
      co_await sleep_until(session().clock(),
                           std::min(kill_at, session().clock().now() + grace_interval));
    }
    const std::set<pid_t> left = co_await kill_all();
    const Duration late = session().clock().now() - deadline_;
    if (left.empty() && late <= Duration::zero()) co_return true;
    const std::string key = output::keys_text(options_.resources);
    const std::string time = format_duration(std::chrono::ceil<Milliseconds>(late));
    if (left.empty()) {
      tell(fmt::format(
          "{}: UNSAFE: what descends from process {} was dead only {} after the end of the lease",
          key, process().pid(), time));
    } else {
      tell(
          fmt::format("{}: UNSAFE: processes could not be killed and still run, {} after the end "
                      "of the lease: {}",
                      key, time, fmt::join(left, " ")));
    }
    co_return left.empty();
  }

  /// Kills until nothing is left, or the deadline has passed and the killed processes had their
  /// time to die without progress; returns what still lives.
  asio::awaitable<std::set<pid_t>> kill_all() {
    // A process that dies while it forks would leave a child that cannot be found.
    const Instant began = session().clock().now();
    co_await hold_still(began + margin_ / 2);
    Instant got_on = began;
    for (std::size_t fewest = std::numeric_limits<std::size_t>::max();;) {
      std::set<pid_t> left = process().living();
      if (left.size() < fewest) got_on = session().clock().now();
      fewest = std::min(fewest, left.size());
      // The deadline moves as long as the lease can be renewed.
      const Instant last = std::max(deadline_, got_on + child::death_timeout);
      if (left.empty() || session().clock().now() >= last) co_return left;
      const bool only_init = process().is_init() && left.size() == 1 && !process().ended();
      if (only_init && session().clock().now() >= deadline_) co_return left;
      if (process().kill(session().clock().now() + child::death_timeout))
        got_on = session().clock().now();
      co_await sleep_until(session().clock(), session().clock().now() + child::kill_interval);
    }
  }

  AcquireOptions& options_;
  Duration margin_;  ///< grows with the measurements
  std::unique_ptr<Event> event_;
  Instant deadline_;
  Instant hold_until_ = Instant::max();
  std::optional<Trouble> trouble_;  ///< why it was lost, or the last round failed
  bool lease_over_ = false;
  bool released_by_others_ = false;
};

}  // namespace

void keep_while_pid(const SessionOptions& about, AcquireOptions& options, child::Channel channel,
                    child::SignalGate& gate, pid_t front) {
  live_in_background<PidHolder>(about, options, std::move(channel), gate, front);
}

}  // namespace redlock::run
